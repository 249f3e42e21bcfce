#!/usr/bin/env bash
# A real model, end to end: five questions of the sample are extracted by a small model behind a real server, recorded,
# and rebuilt from the stored replies alone. Both releases must have one content hash, and every value must lead to a
# reply whose bytes are in the exported file.
#
# Usage: scripts/check-llm.sh CASEMILL FOLDER
#   CASEMILL  the binary
#   FOLDER    gets the server's environment (kept) and the run (made anew)
set -euo pipefail
if [ $# -ne 2 ]; then
    echo "usage: $0 CASEMILL FOLDER" >&2
    exit 2
fi
casemill=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
project=$(realpath "$(dirname "$0")/..")
run=$folder/run
say() { printf '\n-- %s\n' "$1"; }

rm -rf "$run"
mkdir -p "$run/raw/medqa"
# Five questions that reach the extraction.
sed -n '1p;2p;4p;9p;17p' "$project/data/sample/medqa/test.jsonl" >"$run/raw/medqa/test.jsonl"
cp "$project/data/sample/medqa/source.toml" "$run/raw/medqa/"

# The project's files, with a node that may lose more records: such a model does not bring every answer to its end.
cp -R "$project/pipelines" "$project/sources" "$run/"
sed -i.before '/^\[nodes\.extract_slots\]$/,/^$/ s/^max_quarantined = .*/max_quarantined = 0.8/' "$run/pipelines/medrounds.toml"

say "the server"
rm -f "$folder/server.json"
"$project/scripts/llm-server.sh" "$folder" >"$folder/server.log" 2>&1 &
server=$!
stop_server() {
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
}
trap stop_server EXIT
for _ in $(seq 1 600); do
    [ -f "$folder/server.json" ] && break
    kill -0 "$server" 2>/dev/null || { cat "$folder/server.log" >&2; exit 1; }
    sleep 0.5
done
[ -f "$folder/server.json" ] || { echo "the server did not answer within 300 s" >&2; exit 1; }
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$folder/server.json" "$1"; }
CASEMILL_EXTRACTOR_URL=$(field base_url)
export CASEMILL_EXTRACTOR_URL CASEMILL_EXTRACTOR_KEY=none
model=$(field model)
echo "$model answers"

# One call at a time, and time enough for a small machine. Its records are poor: the gates that would drop them stand open,
# so that the release shows what is left of them.
set=(
    --set "models.extractor.model=$model" --set models.extractor.egress=local --set models.extractor.concurrency=1
    --set models.extractor.timeout_seconds=300 --set models.extractor.answers=1
    --set models.extractor.max_tokens=700 --set models.extractor.max_tokens_ceiling=700
    --set 'models.extractor.price={ input = 0.0, output = 0.0 }'
    --set score_fidelity.min_score=0.0 --set score_fidelity.max_contradicted=1.0
    --set normalize_record.empty_symptom_name=review
)
in_run=(--project "$run" --raw "$run/raw" --data "$run/data")
freeze() { "$casemill" freeze medrounds --version "$1" --allow-quarantine --llm replay "${set[@]}" "${in_run[@]}"; }
# 4: finished, with records in quarantine; the model may not have answered well enough for some.
build() { "$casemill" build medrounds --llm "$1" "${set[@]}" "${in_run[@]}" || [ $? -eq 4 ]; }

say "what it would cost"
"$casemill" build medrounds --to apply_decisions --quiet "${set[@]}" "${in_run[@]}"
"$casemill" plan medrounds --cost "${set[@]}" "${in_run[@]}"
say "record"
build record
freeze recorded
"$casemill" replies export medrounds "$run/replies.jsonl.zst" "${set[@]}" "${in_run[@]}"
"$casemill" verify "$run/data/release/medrounds-recorded" --replies "$run/replies.jsonl.zst"

say "replay, without server, work folder and address"
stop_server
rm -rf "$run/data/work"
unset CASEMILL_EXTRACTOR_URL CASEMILL_EXTRACTOR_KEY
build replay
freeze replayed

say "what the text supports of the model's values"
python3 - "$casemill" "$run" "${set[@]}" "${in_run[@]}" <<'PYTHON'
import json, subprocess, sys
casemill, run, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
kept = removed = named = 0
for line in range(1, 6):
    command = [casemill, "--json", "explain", "medrounds", f"medqa/test.jsonl:{line}", "--llm", "replay", *flags]
    life = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["lives"][0]
    record = {}
    for step in life["steps"]:
        record.update(step["changes"])
    if "rejected" not in record:
        last = life["steps"][-1]
        print(f"question {line}: {last['outcome']}, {last['reason']}: {last['detail']}")
        continue
    kept += len(record["slots"])
    removed += len(record["rejected"])
    named += len(record["replies"])
    show = lambda values: "; ".join(f"{value['slot']} {value['value']!r}" for value in values[:4]) or "nothing"
    print(f"question {line}: {len(record['slots'])} kept: {show(record['slots'])}")
    print(f"  {len(record['rejected'])} not in the text: {show(record['rejected'])}")
print(f"{kept} values kept, {removed} taken out, from {named} replies")
if named == 0 or removed == 0:
    sys.exit("the model must have answered, and written things that the text does not say")
PYTHON

hash_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["content_hash"])' "$run/data/release/medrounds-$1/MANIFEST.json"; }
recorded=$(hash_of recorded)
replayed=$(hash_of replayed)
say "recorded $recorded"
echo "   replayed $replayed"
[ "$recorded" = "$replayed" ] || { echo "the replay is another release" >&2; exit 1; }
echo "check-llm: the replay has the content hash of the recorded build"
