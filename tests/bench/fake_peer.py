"""A peer without torch for tests of bench/compare.py: its answers depend on --mode and the names of the benchmarks."""
import json
import os
import sys

print(json.dumps({'peer': 'fake', 'version': '1', 'mode': 'eager', 'start_s': 0.5}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request['do'] == 'setup':
        case = request['case']
        if case['name'].startswith('elementwise'):
            answer = {'supported': False, 'seconds': 0}
        elif case['name'] == 'gemm/128x128x128':
            answer = {'error': 'it fails on purpose'}
        else:
            with open(request['inputs'], 'rb') as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), 'little')))
            assert header['in0']['shape'] == [64, 64] and header['in1']['dtype'] == 'F32', header
            assert case['operation'] == 'matmul' and case['transposed'] == [False, False]
            answer = {'supported': True, 'seconds': 0.25}
    elif request['do'] == 'run':
        answer = {'seconds': 0.001}
    elif request['do'] == 'check':
        assert os.path.getsize(request['results']) > 64 * 64 * 4
        answer = {'difference': float(os.environ.get('FAKE_DIFFERENCE', '0')), 'tolerance': 1e-4, 'what': 'out'}
    else:
        answer = {}
    print(json.dumps(answer), flush=True)
