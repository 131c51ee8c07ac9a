#!/bin/sh
# Prints the oldest and the newest Python of this machine that the project supports, a line each: version and path.
# One that VENV/bin/python (the argument) is itself is left out. Looks on the path and among pyenv's versions.
set -u

venv=${1:-.venv}

candidates() {
    for minor in 11 12 13 14 15 16; do
        command -v "python3.$minor"
    done
    command -v pyenv >/dev/null 2>&1 && for version in $(pyenv versions --bare 2>/dev/null); do
        echo "$(pyenv prefix "$version" 2>/dev/null)/bin/python3"
    done
}

# "3.13 /usr/bin/python3.13" of an interpreter that runs, is not too old, and can make a virtual environment.
describe() {
    "$1" -c 'import ensurepip, sys, venv
if sys.version_info < (3, 11):
    sys.exit(1)
print("{}.{}".format(*sys.version_info), sys.executable)' 2>/dev/null
}

own=$(describe "$venv/bin/python" | cut -d " " -f 1)
candidates | while read -r python; do describe "$python"; done | sort -V -u -k 1,1 |
    sed -n '1p;$p' | uniq | grep -v "^${own:-none} "
exit 0
