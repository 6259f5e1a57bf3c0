#!/usr/bin/env bash
# Runs the experiment of docs/results.md and generates its charts, tables and list of runs. It takes
# about two hours of CPU time.
#
#   docs/results/run.sh FOLDER
#
# FOLDER has the files of the openb trace: openb_node_list_all_node.csv and
# openb_pod_list_default.csv of Alibaba's cluster-trace-gpu-v2023.
set -euo pipefail
openb=$(realpath "${1:?must be the folder of the openb trace}")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/plimsoll" ./cmd/plimsoll

profiles=(--profile default --profile most-allocated --profile limits --profile allocatable-least --profile low-risk --profile low-risk+limits)
usage=(--usage beta:mean=0.7 --usage bursts:mean=0.7 --usage diurnal:mean=0.7)
results=()

run() { # NAME ARGUMENTS...
  echo "== $1"
  (cd "$work" && ./plimsoll compare "${profiles[@]}" -o json "${@:2}" >"$1.json")
  results+=("$1=$work/$1.json")
}

# Every fourth node and every fourth pod: a run of the complete trace takes 15 s.
nodes=openb_node_list_all_node.csv pods=openb_pod_list_default.csv
for file in $nodes $pods; do awk 'NR == 1 || NR % 4 == 2' "$openb/$file" >"$work/quarter_$file"; done

run openb-quarter --trace "openb:quarter_$nodes,quarter_$pods" --limits ratio=1+1.5+2+4 "${usage[@]}" --seeds 10
run 500 --generate nodes=500,pods=5000,fill=0.9,over=3600,guaranteed=0.3,best-effort=0.1 --limits ratio=1+1.5+2+4 "${usage[@]}" --seeds 10
run 5000 --generate nodes=5000,pods=50000,fill=0.9,over=3600,guaranteed=0.3,best-effort=0.1 --limits ratio=2 --usage bursts:mean=0.7 --seeds 2
run openb --trace "openb:$openb/$nodes,$openb/$pods" --limits ratio=2 --usage bursts:mean=0.7 --seeds 2

# The effect of weights and arguments of the plugins, on a small cluster.
profiles=(--profile default --profile limits --profile low-risk)
for variant in limits-without-balance limits-beside low-risk-weight-1 low-risk-weight-10 low-risk-by-load low-risk-by-limits low-risk-window-1; do
  cp "docs/results/profiles/$variant.yaml" "$work/$variant"
  profiles+=(--profile "$variant")
done
small=nodes=60,pods=900,fill=0.9,over=3600,guaranteed=0.3
run why --generate "$small" --limits ratio=2+4 "${usage[@]}" --seeds 10
run why-best-effort --generate "$small,best-effort=0.1" --limits ratio=2+4 "${usage[@]}" --seeds 10

go run ./hack/results docs/results "${results[@]}"
