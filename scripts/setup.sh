#!/bin/sh
# Usage: setup.sh VENV EXTRA. Creates the virtual environment that the Makefile uses where it is missing, and installs
# this project with an extra into it.
#
# Proton, the AMQP engine, is compiled while it installs, so a C compiler and Python's headers are needed; the pipeline's
# Spark needs Java. Where they are missing, root on a Debian system gets them installed; everybody else is told the
# command. Only the extra `dev`, with which the pipeline is tested, asks for Java, and setting up goes on without.
set -eu

venv=${1:-.venv}
extra=${2:-dev}

say() { printf '%s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

has_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }
has_headers() {
    "$1" -c 'import pathlib, sys, sysconfig
sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' 2>/dev/null
}
is_new_enough() { command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# Set PYTHON to choose one. Otherwise the system's, if nothing is missing there: distributions build it with profiles of
# what programs do, and one that was only compiled, as by pyenv, takes a fifth more for the tests. Or else the newest
# that will do.
system=/usr/bin/python3
find_python() {
    if [ -z "${PYTHON:-}" ] && is_new_enough "$system" && has_venv "$system" && has_headers "$system"; then
        echo "$system"
        return
    fi
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if is_new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
}

has_compiler() { command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1; }
has_java() { sh "$(dirname "$0")/java.sh" 2>/dev/null; }

missing=
python=$(find_python)
[ -n "$python" ] || missing="python3 python3-venv python3-dev"
if [ -n "$python" ]; then
    has_venv "$python" || missing="$missing python3-venv"
    has_headers "$python" || missing="$missing python3-dev"
fi
has_compiler || missing="$missing gcc libc6-dev"

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }
if [ "$extra" != dev ]; then
    :
elif can_install; then
    has_java || missing="$missing default-jre-headless"
else
    sh "$(dirname "$0")/java.sh" || say "Everything but the pipeline works without it."
fi

if [ -n "$missing" ]; then
    if can_install; then
        say "Installing with apt-get:" $missing
        apt-get update -qq
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    else
        fail "please install what is missing, then try again:
    sudo apt-get install$(printf ' %s' $missing)
(on other systems: Python 3.11 or newer with its venv module and headers, and a C compiler)"
    fi
    python=$(find_python)
    [ -n "$python" ] || fail "Python 3.11 or newer is needed; $(python3 --version 2>/dev/null || echo none) was found"
fi

if [ ! -x "$venv/bin/python" ]; then
    say "Creating $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi

# A line for each step of pip, on a terminal one line that changes. What pip wrote is in the log.
progress() {
    [ -t 1 ] && terminal=1 || terminal=0
    awk -v terminal="$terminal" '
        function step(text) {
            if (terminal) printf "\r\033[K%s", text
            else if (text !~ /^Found/) print text
            fflush()
        }
        /^Collecting / { sub(/[^[:alnum:]_.-].*/, "", $2); step("Found " ++found ": " $2) }
        /^Building wheels? for / { step("Compiling proton, the AMQP engine: about a minute") }
        /^Installing collected packages/ { step("Unpacking " NF - 3 " packages") }
        END { if (terminal) printf "\r\033[K" }'
}

# Without pkg-config's paths proton is built without OpenSSL and Cyrus SASL: TLS is asyncio's, and the SASL
# mechanisms that we use are built in. So it needs no library that is not on every machine.
log=$venv/install.log
say "Installing the extra \`$extra\` (proton is compiled: about a minute)"
{
    PKG_CONFIG_LIBDIR=/nonexistent PKG_CONFIG_PATH= \
        "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off --editable ".[$extra]" 2>&1 ||
        echo "pip failed"
} | tee "$log" | progress
if [ "$(tail -n 1 "$log")" = "pip failed" ]; then
    tail -n 40 "$log" >&2
    fail "pip could not install the project (see above, and $log); the network and a C compiler are needed"
fi
say "Ready: $venv"
