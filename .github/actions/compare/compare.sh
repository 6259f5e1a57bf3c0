#!/usr/bin/env bash
# Runs plimsoll compare with the flags in ARGS, one per line, writes the report to REPORT and adds the result to
# the summary of the job. It ends with the exit code of plimsoll. Without a PROGRAM it downloads that of VERSION.
set -euo pipefail
: "${ARGS:?must have the flags of plimsoll compare, one per line}" "${REPORT:?must be the path of the report}"
: "${GITHUB_STEP_SUMMARY:=/dev/null}"

# download writes the program of VERSION for this machine to a folder and prints its path.
download() {
  local folder=$1 system architecture archive
  system=$(uname -s | tr '[:upper:]' '[:lower:]')
  case $(uname -m) in
    x86_64) architecture=amd64 ;;
    *) architecture=arm64 ;;
  esac
  archive=plimsoll_${VERSION:?must be a version such as v0.1.0 unless program is set}_${system}_$architecture.tar.gz
  for file in "$archive" checksums.txt; do
    curl --fail --silent --show-error --location --output "$folder/$file" \
      "https://github.com/plimsoll-k8s/plimsoll/releases/download/$VERSION/$file"
  done
  (cd "$folder" && grep "  $archive\$" checksums.txt | shasum --algorithm 256 --check --quiet && tar -xzf "$archive" plimsoll)
  echo "$folder/plimsoll"
}

if [ -z "${PROGRAM:-}" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  PROGRAM=$(download "$folder")
fi
arguments=()
while IFS= read -r line; do
  [ -z "$line" ] || arguments+=("$line")
done <<<"$ARGS"
"$PROGRAM" compare "${arguments[@]}" --report "$REPORT" -o markdown | tee -a "$GITHUB_STEP_SUMMARY"
