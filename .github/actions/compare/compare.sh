#!/usr/bin/env bash
# Runs plimsoll compare with the flags in ARGS, one per line, writes the report to REPORT, adds the result to the summary
# of the job and sets the output report. It ends with the exit code of plimsoll. Without a PROGRAM it downloads that of
# VERSION for Linux or macOS.
set -euo pipefail
: "${ARGS:?must have the flags of plimsoll compare, one per line}" "${REPORT:?must be the path of the report}"
: "${GITHUB_STEP_SUMMARY:=/dev/null}" "${GITHUB_OUTPUT:=/dev/null}"

fail() {
  echo "::error::plimsoll compare: $*" >&2
  exit 2
}

# download writes the program of VERSION for this machine to a folder.
download() {
  local folder=$1 system architecture archive check
  [[ "${VERSION:-}" =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] ||
    fail "version: invalid value \"${VERSION:-}\": must be a version such as v0.1.0 unless program is set"
  case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "invalid runner $(uname -s): must be Linux or macOS" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) architecture=amd64 ;;
    aarch64 | arm64) architecture=arm64 ;;
    *) fail "invalid runner of architecture $(uname -m): must be x86_64 or arm64" ;;
  esac
  archive=plimsoll_${VERSION}_${system}_$architecture.tar.gz
  for file in "$archive" checksums.txt; do
    curl --fail --silent --show-error --location --output "$folder/$file" \
      "https://github.com/plimsoll-k8s/plimsoll/releases/download/$VERSION/$file" || fail "version: found no $file of $VERSION"
  done
  check="sha256sum" # macOS has shasum
  command -v sha256sum >/dev/null || check="shasum --algorithm 256"
  (cd "$folder" && grep "  $archive\$" checksums.txt | $check --check >/dev/null) || fail "the checksum of $archive is not that of the release"
  tar -xzf "$folder/$archive" -C "$folder" plimsoll
}

if [ -z "${PROGRAM:-}" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  download "$folder"
  PROGRAM=$folder/plimsoll
fi
arguments=()
while IFS= read -r line; do
  [ -z "$line" ] || arguments+=("$line")
done <<<"$ARGS"
echo "report=$REPORT" >>"$GITHUB_OUTPUT"
"$PROGRAM" compare "${arguments[@]}" --report "$REPORT" -o markdown | tee -a "$GITHUB_STEP_SUMMARY"
