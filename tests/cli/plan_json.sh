# SPDX-License-Identifier: Apache-2.0
# JSON: a model's figures are never marked as measured, and the parts of a lookup add up.
embla plan --rows 1e9 --dim 128 --hosts 4 --simulate --ranks 1,4 --tokens 1024 --json >plan.json
python3 - <<'END'
import json
plan = json.load(open('plan.json'))
print(plan['kind'], plan['measured'], plan['machine']['measured'], plan['machine']['measured_with'])
print(plan['verdict'])
print(plan['table_bytes'], plan['min_hosts'], plan['plan']['ranks'], plan['plan']['fastest'])
print([h['hosts'] for h in plan['hosts']])
for h in plan['hosts'] + plan['simulation']:
    for t in h['exchanges'].values():
        parts = sum(t[p]['seconds'] for p in ('dedup', 'numbers', 'gather', 'rows', 'expand'))
        assert abs(parts + t['latency_seconds'] - t['lookup_seconds']) < 1e-9
print([(s['ranks'], s['senders'], s['measured']) for s in plan['simulation']])
END
