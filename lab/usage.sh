#!/usr/bin/env bash
# Downloads the public usage of real machines that lab/results uses: the files of three repositories of GitHub, less the dates, jobs and
# machines that are kept for other experiments. The files have no part in this project; lab/results/README.md has their conditions.
#
#   lab/usage.sh FOLDER
#
# FOLDER is created. It is the argument of lab/run.sh.
set -euo pipefail
mkdir -p "${1:?must be the folder for the files}"
folder=$(realpath "$1")
cd "$(dirname "$0")"
repositories=$(mktemp -d)
trap 'rm -rf "$repositories"' EXIT
clone() { git clone --quiet --depth 1 "https://github.com/$1" "$repositories/$2"; }

clone beloglazov/planetlab-workload-traces planetlab
for date in 20110303 20110306 20110309 20110322 20110325; do cp -r "$repositories/planetlab/$date" "$folder"; done

clone HiPro-IT/CPU-and-Memory-resource-usage-from-Google-Cluster-Data google
tar -xzf "$repositories/google/GCD_VMs.tar.gz" -C "$repositories/google"
mkdir -p "$folder/GCD_VMs"
while read -r job; do
  find "$repositories/google" -name "vm_${job}_*" -exec cp {} "$folder/GCD_VMs" \;
done < experiment/usage/google-jobs.txt

clone JessieRayeBauer/Time-Series-Forecasting- bitbrains
for month in 2013-7 2013-8; do
  mkdir -p "$folder/rnd/$month"
  for n in $(seq 1 2 399); do cp "$repositories/bitbrains/rnd/$month/$n.csv" "$folder/rnd/$month"; done
done
