#!/usr/bin/env bash
# Is tools/trace/view/viewer.html what its sources make today? Skipped (77) without node or without the npm packages.
set -u
cd "$(dirname "$0")/.." || exit 1
command -v node >/dev/null || { echo "bundle: skipped: no node"; exit 77; }
[ -f node_modules/vite/bin/vite.js ] || { echo "bundle: skipped: no npm packages (make viewer installs them)"; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
VIEWER_DIR=$folder node node_modules/vite/bin/vite.js build --logLevel warn || exit 1
if ! cmp -s "$folder/viewer.html" ../trace/view/viewer.html; then
  echo "bundle: tools/trace/view/viewer.html is not what tools/view makes: run make viewer and commit the result" >&2
  exit 1
fi
echo "bundle: up to date"
