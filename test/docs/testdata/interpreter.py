"""Run blocks of a page as one session: each line of standard input is a block, as JSON. The end of each is a line with its exit code."""

import json
import os
import sys
import traceback

names = {"__name__": "__main__"}
for line in sys.stdin:
    code = 0
    try:
        exec(compile(json.loads(line), "block", "exec"), names)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    print(f"\n{os.environ['BLOCK_MARK']} {code}", flush=True)
