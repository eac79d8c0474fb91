#!/bin/sh
# A script gate: says in JSON whether everything is committed.
left=$(git status --porcelain | wc -l | tr -d ' ')
if [ "$left" = 0 ]; then
  echo '{"passed": true, "message": "The working tree is clean."}'
else
  echo "{\"passed\": false, \"message\": \"$left files are not committed.\", \"detail\": {\"files\": $left}}"
fi
