#!/bin/sh
# Makes sure that there is a browser for the tests of the web console: Chromium, of $CHROMIUM or on the path. Root on a
# Debian system gets it installed; everybody else is told the command. Without it these tests are skipped.
set -eu

for name in ${CHROMIUM:-} chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing with apt-get: chromium"
    apt-get update -qq
    if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; then
        exit 0
    fi
    echo "browser: chromium could not be installed; the tests of the web console in a browser are skipped" >&2
    exit 0
fi
echo "For tests of the web console in a browser: sudo apt-get install chromium" >&2
