#!/usr/bin/env bash
# Runs the experiment and writes its tables and list of runs to lab/results. It prints the expected
# and the used CPU time, about two hours, and continues where it was interrupted.
#
#   lab/run.sh FOLDER [RESULTS]
#
# FOLDER has the files of the openb trace: openb_node_list_all_node.csv and openb_pod_list_default.csv of Alibaba's
# cluster-trace-gpu-v2023. RESULTS is the folder for the results of the scenarios, results.out by default.
set -euo pipefail
openb=$(realpath "${1:?must be the folder of the openb trace}")
results=$(realpath -m "${2:-results.out}")
cd "$(dirname "$0")"
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
go build -o "$program/experiment" ./experiment
"$program/experiment" -openb "$openb" "$results"
variants=default,limits,low-risk
for file in results/profiles/*.yaml; do variants+=,$file; done
"$program/experiment" -part tuning -scenarios ^static -profiles "$variants" "$results/variants"
"$program/experiment" -part tuning -seed 1001 -seeds 3 -profiles default,predicted,without-fit,without-history,without-correlation,without-blending \
  -openb "$openb" "$results/ablations"
go run ./tables "$results" results
