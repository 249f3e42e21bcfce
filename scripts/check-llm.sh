#!/usr/bin/env bash
# A real model, end to end. First it extracts and answers: five questions of the sample are recorded with a small model behind a
# real server, and rebuilt from the stored replies alone; both releases must have one content hash, and every value must lead
# to a reply whose bytes are in the exported file. Then it judges, where such a small model fails the control questions; with
# those gates open every judging stage runs on two questions.
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

# The project's files, with nodes that may lose more records: such a model does not bring every answer to its end.
cp -R "$project/pipelines" "$project/sources" "$run/"
sed -i.before 's/^max_quarantined = .*/max_quarantined = 0.8/' "$run/pipelines/medrounds.toml"

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
CHECK_LLM_URL=$(field base_url)
export CHECK_LLM_URL
model=$(field model)
echo "$model answers"

# One real model, so each run gives it some of the roles; those that judge must be others than those they judge.
# $1: file; then the roles that it has, the others are rules.
roles=(filter second_filter extractor fidelity_judge specialist deepseek_r1 qwq_32b phi_4_reasoning olmo_3_1_32b_think
    disagreement_judge adequacy_judge)
write_models() {
    local file=$1 role
    shift
    for role in "${roles[@]}"; do
        case " $* " in
        *" $role "*)
            # One call at a time, and time enough for a small machine.
            printf '[models.%s]\nprovider = "openai"\nbase_url_env = "CHECK_LLM_URL"\nmodel = "%s"\negress = "local"\n' "$role" "$model"
            printf 'temperature = 0.0\nseed = 1\nconcurrency = 1\ntimeout_seconds = 300\nanswers = 1\n'
            printf 'price = { input = 0.0, output = 0.0 }\n'
            case $role in
            extractor) printf 'max_tokens = 700\nmax_tokens_ceiling = 700\n\n' ;;
            *) printf 'max_tokens = 160\nmax_tokens_ceiling = 160\n\n' ;;
            esac
            ;;
        *) printf '[models.%s]\nprovider = "rules"\n\n' "$role" ;;
        esac
    done >"$file"
}
write_models "$run/extracts.toml" extractor deepseek_r1

# Its records are poor: the gates that would drop them stand open, so that the release shows what is left of them.
set=(
    --models "$run/extracts.toml"
    --set 'sample_answers.models=["deepseek_r1"]' --set sample_answers.samples=2
    --set 'validate_consensus.models=[]'
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

say "replay, without work folder and address"
rm -rf "$run/data/work"
url=$CHECK_LLM_URL
unset CHECK_LLM_URL
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

say "the judges, on two questions"
export CHECK_LLM_URL=$url
# Every scripted reply that is wanted is stored: nobody is asked at this address.
export CASEMILL_SCRIPTED_URL=http://127.0.0.1:9/v1
sed -n '1p;4p' "$project/data/sample/medqa/test.jsonl" >"$run/raw/medqa/test.jsonl"
# The answers that are judged, and the other voice of the consensus, are the scripted ones that the sample comes with.
"$casemill" replies import "$project/data/sample/replies.jsonl.zst" "${in_run[@]}"
write_models "$run/judges.toml" filter fidelity_judge specialist disagreement_judge adequacy_judge
python3 - "$project/data/sample/models.toml" "$run/judges.toml" <<'PYTHON'
import re, sys
sample, judges = (open(path).read() for path in sys.argv[1:3])
tables = dict(re.findall(r"(?ms)^\[models\.(\w+)\]\n(.*?)(?=^\[|^#|\Z)", sample))
for name in ("second_filter", "deepseek_r1", "qwq_32b", "phi_4_reasoning", "olmo_3_1_32b_think"):
    judges = re.sub(rf"(?ms)^\[models\.{name}\]\n.*?(?=^\[|\Z)", f"[models.{name}]\n{tables[name]}", judges)
open(sys.argv[2], "w").write(judges)
PYTHON
sed -i.before '/^\[nodes\.validate_consensus\.settings\]$/,/^$/ s/^disputed = .*/disputed = "keep"/' "$run/pipelines/medrounds.toml"
set=(--models "$run/judges.toml" --set score_fidelity.min_judge_score=1)
if "$casemill" build medrounds --llm live "${set[@]}" "${in_run[@]}" 2>"$run/controls.log"; then
    echo "a model of this size should fail the control questions of the filter" >&2
    exit 1
fi
tail -n 1 "$run/controls.log"
grep -q 'control questions right' "$run/controls.log" || exit 1
sed -i.before 's/^\[nodes\.\(filter_vignette\|validate_consensus\|score_fidelity\|assign_specialty\|judge_disagreement\)\]$/&\nmin_controls = 0.0/' "$run/pipelines/medrounds.toml"
sed -i.before 's/^max_quarantined = .*/max_quarantined = 1.0/' "$run/pipelines/medrounds.toml"
build live
"$casemill" report medrounds --llm live "${set[@]}" "${in_run[@]}"

say "the judge of adequacy, on three values"
python3 - "$run" <<'PYTHON'
import hashlib, json, sys
stem = json.loads(open(f"{sys.argv[1]}/raw/medqa/test.jsonl", encoding="utf-8").readline())["question"]
record = {"Personal-Age": "a patient in the fifties", "Personal-Sex": "a person", "Symptom-Name": "feels weak and tired"}
line = {"question_sha256": hashlib.sha256(stem.encode()).hexdigest(), "record": record}
open(f"{sys.argv[1]}/references.jsonl", "w", encoding="utf-8").write(json.dumps(line) + "\n")
PYTHON
"$casemill" compare "$run/references.jsonl" medrounds:extract_slots --resamples 100 --judge medrounds:adequacy_judge \
    --judge-missing skip --llm live --models "$run/judges.toml" --rights "$run/raw/medqa/source.toml" "${in_run[@]}"
echo "check-llm: done"
