#!/bin/sh
# An evaluator script: how tidy the history is. It informs, it never decides.
commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
long=$(git log --format=%s 2>/dev/null | awk 'length > 50' | wc -l | tr -d ' ')
score=$(awk -v n="$commits" -v l="$long" 'BEGIN { printf "%.2f", n ? 1 - l / n : 0 }')
echo "{\"score\": $score, \"summary\": \"$commits commits, $long with a long subject.\", \"metrics\": {\"commits\": $commits, \"long_subjects\": $long}}"
