#!/bin/sh
# Makes a Python with the packages of tests/it/requirements.txt in FOLDER, for the tests that read
# tables with other readers. Does nothing when FOLDER has them already.
#
# Usage: scripts/test-python.sh FOLDER
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
folder=$1
requirements=$(dirname "$0")/../tests/it/requirements.txt
stamp=$folder/requirements.txt

if [ -x "$folder/bin/python" ] && cmp -s "$requirements" "$stamp"; then
    exit 0
fi
# An older or half-made folder is of no use; one that is something else is not ours to remove.
if [ -e "$folder" ]; then
    if [ ! -e "$folder/pyvenv.cfg" ]; then
        echo "$0: $folder exists and is not a Python environment" >&2
        exit 1
    fi
    rm -rf "$folder"
fi
mkdir -p "$(dirname "$folder")"
"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
# Last: its presence says that all is there.
cp "$requirements" "$stamp"
