#!/bin/sh
# Installs the command for every user of a dev container. The keeper of each user starts with their first command.
set -eu

fail() {
  echo "holdfast: $1" >&2
  exit 1
}

command -v npm >/dev/null || fail 'Node and npm are missing: add the feature "node" to devcontainer.json.'
node -e '
  const [major, minor] = process.versions.node.split(".").map(Number);
  process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1);
' || fail "Node 20.19 or newer is needed; this is $(node --version)."

npm install --global --ignore-scripts --no-audit --no-fund "${PACKAGE:-holdfast}"
holdfast version
