#!/usr/bin/env bash
# Runs the experiment and writes its tables and lists of runs to lab/results, and its figures to docs/results.md. It prints the
# expected and the used CPU time, about five hours, and continues where it was interrupted.
#
#   lab/run.sh OPENB USAGE [RESULTS]
#
# OPENB has the files of the openb trace: openb_node_list_all_node.csv and openb_pod_list_default.csv of Alibaba's
# cluster-trace-gpu-v2023; it may be empty to run the scenarios on real usage only. USAGE is the folder of the public usage of real
# machines that usage.sh downloads. RESULTS is the folder for the results of the scenarios, results.out by default.
set -euo pipefail
openb=${1?must be the folder of the openb trace, or empty}
[ -z "$openb" ] || openb=$(realpath "$openb")
usage=$(realpath "${2:?must be the folder of the public usage of real machines}")
results=$(realpath -m "${3:-results.out}")
cd "$(dirname "$0")"
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
go build -o "$program/experiment" ./experiment
parts=default,predicted,without-fit,without-history,without-correlation,without-blending
real='^(google|planetlab|bitbrains)-'
"$program/experiment" -usage "$usage" -scenarios "$real" "$results/real"
"$program/experiment" -usage "$usage" -part tuning -scenarios ^tuning- -seed 1001 -seeds 3 -profiles $parts,oracle "$results/real/ablations"
if [ -n "$openb" ]; then
  "$program/experiment" -part generated -openb "$openb" "$results"
  variants=default,limits,low-risk
  for file in results/profiles/*.yaml; do variants+=,$file; done
  "$program/experiment" -part tuning -scenarios ^static -profiles "$variants" "$results/variants"
  "$program/experiment" -part tuning -seed 1001 -seeds 3 -profiles $parts -openb "$openb" "$results/ablations"
fi
go run ./tables "$results" results ../docs/results.md
