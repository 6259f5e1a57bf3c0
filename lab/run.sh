#!/usr/bin/env bash
# Runs the experiment and writes its tables and list of runs to lab/results, and its figures to docs/results.md. It prints the
# expected and the used CPU time, about five hours, and continues where it was interrupted. The runs beside autoscalers in
# lab/results/autoscalers.csv are not repeated; without the file, they take 90 minutes more.
#
#   lab/run.sh USAGE [RESULTS]
#
# USAGE is the folder of the public usage of real machines that usage.sh downloads, RESULTS the folder for the results of the scenarios,
# results.out by default.
set -euo pipefail
usage=$(realpath "${1:?must be the folder of the public usage of real machines}")
results=$(realpath -m "${2:-results.out}")
cd "$(dirname "$0")"
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
go build -o "$program/experiment" ./experiment
"$program/experiment" -usage "$usage" "$results"
"$program/experiment" -usage "$usage" -part tuning -scenarios '^tuning-.*-churn-' -seed 1001 -seeds 2 \
  -profiles default,predicted,without-history,oracle "$results/ablations"
for use in 0.45 0.55 0.65 0.75 0.85 0.95 1; do
  "$program/experiment" -usage "$usage" -use "$use" -scenarios '^(google|planetlab)-(stay|churn)-be0$' -seeds 2 \
    -profiles default,predicted,oracle "$results/levels/$use"
done
go run ./tables "$results" results ../docs/results.md
go run ./autoscalers results
