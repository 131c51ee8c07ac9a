#!/bin/sh
# Whether there is a Java that Spark runs on: 17 or newer, of $JAVA_HOME or on the path. Says on standard error what is
# wrong, and ends with 1, where there is none.
set -u

java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java

# "17.0.15", "21" or, before Java 9, "1.8.0_392".
version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1)
[ "${version:-0}" -ge 17 ] && exit 0

if [ -n "$version" ]; then
    found="$java is Java $version"
elif [ -n "${JAVA_HOME:-}" ]; then
    found="there is none in JAVA_HOME, $JAVA_HOME"
else
    found="there is none on the path"
fi
printf '%s\n' "Spark, for the pipeline, needs Java 17 or newer; $found." \
    "On Debian: sudo apt-get install default-jre-headless" >&2
exit 1
