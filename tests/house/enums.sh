#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every value of a public enum begins with the enum's noun: embla_pool_kind has EMBLA_POOL_MEAN.
# Dtypes have short names (EMBLA_F32), statuses are EMBLA_OK and EMBLA_ERR_...
#   usage: enums.sh PROJECT
set -eu
cd "$1"
bad=$(cat include/*.h | awk '
    { gsub(/\/\*[^*]*\*\//, "") }
    /^typedef enum/ { inside = 1; count = 0 }
    inside {
        line = $0
        while (match(line, /EMBLA_[A-Z0-9_]+/)) {
            values[count++] = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
        }
    }
    inside && match($0, /} embla_[a-z0-9_]+;/) {
        name = substr($0, RSTART + 2, RLENGTH - 3)
        noun = name
        sub(/_kind$/, "", noun)
        noun = toupper(noun) "_"
        enums++
        for (i = 0; i < count && name !~ /^embla_dtype$/; i++) {
            good = index(values[i], noun) == 1
            if (name == "embla_status") good = values[i] == "EMBLA_OK" || index(values[i], "EMBLA_ERR_") == 1
            if (!good) print values[i] " of " name " does not begin with " noun
        }
        inside = 0
    }
    END { if (enums < 10) print "only " enums " enums were found" }')
[ -z "$bad" ] || { echo "$bad"; exit 1; }
