#!/usr/bin/env bash
# Installs what building needs and is not there: a C compiler (for zstd) and Python with venv (for one test).
# Rust itself comes from rustup; its version is in Cargo.toml.
set -euo pipefail

if ! command -v cargo >/dev/null; then
  echo "cargo is not installed: get Rust from https://rustup.rs, then run this again" >&2
  exit 2
fi
missing=()
command -v cc >/dev/null || missing+=(build-essential)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
[ ${#missing[@]} -eq 0 ] && exit 0

if command -v apt-get >/dev/null; then
  as_root=""
  [ "$(id -u)" -eq 0 ] || as_root=sudo
  echo "installing ${missing[*]}" >&2
  $as_root apt-get update -qq
  $as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "please install: ${missing[*]} (or what your system calls them)" >&2
  exit 2
fi
