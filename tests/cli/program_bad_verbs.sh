# SPDX-License-Identifier: Apache-2.0
# No verb, an unknown one, one that other tools have.
try
try --quiet
try --
try cots
try Cost
try frobnicate
for word in ls get nn norms glitch pca export similar size benchmark completions man; do
    try "$word"
done
try --unknown
try --rows 5
try bench
try bench lokup
try bench lookup lookup
try completion
try completion tcsh
try completion bash --json
try help nothing
