# SPDX-License-Identifier: Apache-2.0
# docs/cluster.md shows what its commands print.
awk '/^\$ embla plan/ { n++; print substr($0, 3) >("command" n); next }
    /^```/ { shown = 0; if (n > done) done = n; next }
    n > done { print >("expected" n) }' "$SOURCE/docs/cluster.md"
for ((n = 1; n <= 3; n++)); do
    . "./command$n" >printed
    diff "expected$n" printed && echo "command $n: as shown"
done
