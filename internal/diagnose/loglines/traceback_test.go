package loglines

import (
	"strings"
	"testing"
)

// title begins tracebacks, and library is a call in one of the interpreter's files.
const (
	title   = "Traceback (most recent call last):\n"
	library = "  File \"/usr/lib/python3.11/json/__init__.py\", line 293, in load\n    return loads(fp.read(),\n           ^^^^^^^^^^^^^^^^\n"
	handled = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
	direct  = "\n\nThe above exception was the direct cause of the following exception:\n\n"
)

// call is a call in a traceback, of a line with a source.
func call(file, line, source string) string {
	return "  File \"" + file + "\", line " + line + ", in main\n    " + source + "\n"
}

// indented puts a text before each line of another one.
func indented(before, text string) string {
	return before + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+before) + "\n"
}

// TestTracebacks has tracebacks as programs and frameworks print them: which exception is the one that ended the program, the first one of
// its chain, and the last call in the program's own files.
func TestTracebacks(t *testing.T) {
	t.Parallel()
	mesh := title + call("/app/mesh.py", "7", "raise ValueError(name)") + "ValueError: no cells"
	const noted = "2026-11-29 02:06:22,126 ERROR no tracking\n"
	lost := title + call("/app/track.py", "3", "connect()") + "ConnectionError: mlflow is away\n"
	steps := strings.Repeat("step 1: ok\n", 5)
	for name, test := range map[string]struct{ log, message, first, place string }{
		"raised from": {
			title + call("/app/config.py", "4", "open(path)") + "FileNotFoundError: [Errno 2] No such file or directory: '/data/config.json'" + direct + title + call("/app/train.py", "7", "load()") + call("/app/config.py", "6", "raise") + "RuntimeError: cannot load the configuration",
			"RuntimeError: cannot load the configuration", "FileNotFoundError: [Errno 2] No such file or directory: '/data/config.json'", "config.py, line 6",
		},
		"another way that failed": {
			title + call("/app/a.py", "4", "return cache[name]") + "KeyError: 'shard-3'" + handled + title + call("/app/a.py", "6", "open(name)") + "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-3'",
			"FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-3'", "KeyError: 'shard-3'", "a.py, line 6",
		},
		"a defect of the handler": {
			title + call("/app/a.py", "3", "raise") + "ValueError: shard 3 has no rows" + handled + title + call("/app/a.py", "5", "logger.error(e)") + "NameError: name 'logger' is not defined",
			"NameError: name 'logger' is not defined", "ValueError: shard 3 has no rows", "a.py, line 5",
		},
		"three in a chain": {
			title + call("/usr/lib/python3.11/socket.py", "9", "connect") + "ConnectionRefusedError: [Errno 111] Connection refused" + direct +
				title + call("/usr/lib/python3.11/site-packages/urllib3/connection.py", "5", "raise") + "urllib3.exceptions.MaxRetryError: HTTPConnectionPool(host='x', port=80): Max retries exceeded" + handled +
				title + call("/app/get.py", "2", "requests.get(url)") + call("/usr/lib/python3.11/site-packages/requests/adapters.py", "7", "raise") + "requests.exceptions.ConnectionError: HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /",
			"requests.exceptions.ConnectionError: HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /", "ConnectionRefusedError: [Errno 111] Connection refused", "get.py, line 2",
		},
		"a chain that ends with a name of its own": {
			title + call("/app/a.py", "3", "d['lr']") + "KeyError: 'lr'" + direct + title + call("/app/a.py", "5", "raise") + "__main__.main.<locals>.Unset: lr",
			"__main__.main.<locals>.Unset: lr", "KeyError: 'lr'", "a.py, line 5",
		},
		"interrupted while handling": {
			mesh + handled + title + call("/app/a.py", "5", "time.sleep(1)") + "KeyboardInterrupt",
			"ValueError: no cells", "", "mesh.py, line 7",
		},
		"another rank ended while handling": {
			mesh + handled + title + call("/app/a.py", "5", "hvd.barrier()") + "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.",
			"ValueError: no cells", "", "mesh.py, line 7",
		},
		"a chain of one rank among others": {
			indented("[1,2]<stderr>:", title+call("/app/a.py", "3", "d['lr']")+"KeyError: 'lr'") + "[1,0]<stderr>:ValueError: later\n" + indented("[1,2]<stderr>:", strings.TrimPrefix(direct, "\n")+title+call("/app/a.py", "5", "raise")+"RuntimeError: no rate"),
			"RuntimeError: no rate", "KeyError: 'lr'", "a.py, line 5",
		},
		"a second one that is no chain": {mesh + "\n" + title + call("/app/b.py", "1", "x") + "RuntimeError: no peer", "ValueError: no cells", "", "mesh.py, line 7"},
		"a pool of processes": {
			"multiprocessing.pool.RemoteTraceback: \n\"\"\"\n" + title + call("/usr/lib/python3.11/multiprocessing/pool.py", "125", "result") + call("/app/mesh.py", "7", "raise") + "ValueError: no cells\n\"\"\"" + direct + title + call("/app/train.py", "6", "p.map(work)") + "ValueError: no cells",
			"ValueError: no cells", "", "mesh.py, line 7",
		},
		"a worker of PyTorch's DataLoader": {
			title + call("/app/train.py", "6", "for batch in data:") + "ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal " + mesh,
			"ValueError: no cells", "ValueError: Caught ValueError in DataLoader worker process 0.", "mesh.py, line 7",
		},
		"a process of PyTorch": {
			title + call("/app/train.py", "6", "mp.spawn(run)") + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n" + mesh,
			"ValueError: no cells", "", "mesh.py, line 7",
		},
		"a group": {
			"  + Exception Group " + title + indented("  | ", call("/app/train.py", "8", "asyncio.run(main())")+library+"ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)") +
				"  +-+---------------- 1 ----------------\n" + indented("    | ", mesh) + "    +---------------- 2 ----------------\n" + indented("    | ", title+call("/app/train.py", "2", "x")+"KeyError: 7") + "    +------------------------------------",
			"ValueError: no cells", "", "mesh.py, line 7",
		},
		"a group alone":          {"  + Exception Group " + title + indented("  | ", call("/app/train.py", "8", "asyncio.run(main())")+"ExceptionGroup: errors (2 sub-exceptions)"), "ExceptionGroup: errors (2 sub-exceptions)", "", "train.py, line 8"},
		"a note":                 {mesh + "\nrank 3, shard 7", "ValueError: no cells", "", "mesh.py, line 7"},
		"a message of two lines": {title + call("/app/a.py", "1", "raise") + "RuntimeError: \n\nThe mesh has no cells.\nUse another partition.", "RuntimeError: The mesh has no cells.", "", "a.py, line 1"},
		"a message that goes on": {
			title + call("/app/a.py", "1", "import") + "RuntimeError: Failed to import transformers.models.llama because of the following error (look up to see its traceback):\nNo module named 'flash_attn'",
			"RuntimeError: Failed to import transformers.models.llama because of the following error (look up to see its traceback): No module named 'flash_attn'", "", "a.py, line 1",
		},
		"a field that is not valid": {
			title + call("/app/a.py", "1", "Config(**d)") + "pydantic_core._pydantic_core.ValidationError: 2 validation errors for Config\nlr\n  Input should be a valid number [type=float_type]\nseed\n  Field required",
			"pydantic_core._pydantic_core.ValidationError: 2 validation errors for Config: lr: Input should be a valid number [type=float_type]", "", "a.py, line 1",
		},
		"a message without a text": {title + call("/app/a.py", "1", "assert n") + "AssertionError\nmpirun detected that", "AssertionError", "", "a.py, line 1"},
		"an empty message":         {title + call("/app/a.py", "1", "raise") + "RuntimeError: \n--------------------------------------------------------------------------", "RuntimeError:", "", "a.py, line 1"},
		"a heading":                {"MeanSquaredError:\n0.01\nstep 2", "", "", ""},
		"the syntax":               {"  File \"/app/train.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax", "SyntaxError: invalid syntax", "", "train.py, line 1"},
		"an endless recursion":     {title + call("/app/walk.py", "2", "return walk(n)") + call("/app/walk.py", "2", "return walk(n)") + "  [Previous line repeated 996 more times]\nRecursionError: maximum recursion depth exceeded", "RecursionError: maximum recursion depth exceeded", "", "walk.py, line 2"},
		"not a text":               {title + call("/app/a.py", "2", "open(x).read()") + "  File \"<frozen codecs>\", line 322, in decode\nUnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 3: unexpected end of data", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 3: unexpected end of data", "", "a.py, line 2"},
		"a time before each line":  {indented("2026-11-29 02:06:17,266 ERROR ", mesh), "ValueError: no cells", "", "mesh.py, line 7"},
		"other times":              {"02:06:17.1 E " + title + "02:06:17.2 E   File \"/app/a.py\", line 3, in main\n02:06:18.3 E queue.Empty", "queue.Empty", "", "a.py, line 3"},
		"the name of a host":       {indented("pi-worker-0: ", mesh), "ValueError: no cells", "", "mesh.py, line 7"},
		"a tag of torchrun":        {indented("[default1]:", mesh), "ValueError: no cells", "", "mesh.py, line 7"},
		"a logger that writes it":  {"ERROR:root:" + title + call("/app/a.py", "3", "q.get()") + "_queue.Empty", "_queue.Empty", "", "a.py, line 3"},
		"mpi4py":                   {title + "  File \"<frozen runpy>\", line 198, in _run_module_as_main\n" + call("/usr/lib/python3/dist-packages/mpi4py/__main__.py", "7", "main()") + call("/app/a.py", "3", "x()") + "KeyError: 'lr'\n--------------------------------------------------------------------------\nMPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD", "KeyError: 'lr'", "", "a.py, line 3"},
		"loguru":                   {"2026-11-29 02:00:00.000 | ERROR    | __main__:<module>:12 - An error has been caught in function '<module>', process 'MainProcess' (1), thread 'MainThread' (2):\n" + title + "\n> File \"/app/train.py\", line 12, in <module>\n    main()\n    └ <function main at 0x7f>\n\n  File \"/app/train.py\", line 5, in main\n    raise KeyError(7)\n\nKeyError: 7", "KeyError: 7", "", "train.py, line 5"},
		"rich": {
			"╭──────────── Traceback (most recent call last) ────────────╮\n│ /app/train.py:12 in <module>                              │\n│                                                           │\n│   11 if __name__ == \"__main__\":                           │\n│ ❱ 12 │   main()                                           │\n│                                                           │\n│ /app/train.py:5 in main                                   │\n│                                                           │\n│ ❱ 5 │   raise Empty(\"x\")                                  │\n│                                                           │\n│ /usr/lib/python3.11/queue.py:9 in get                     │\n╰───────────────────────────────────────────────────────────╯\nEmpty: x",
			"Empty: x", "", "train.py, line 5",
		},
		"torchrun": {
			indented("[rank1]: ", mesh) + "E1129 01:00:00.000000 12 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 14) of binary: /usr/bin/python3\n" + title + call("/usr/local/bin/torchrun", "8", "sys.exit(main())") + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\ntrain.py FAILED",
			"ValueError: no cells", "", "mesh.py, line 7",
		},
		"torchrun, of a signal": {
			title + call("/usr/local/bin/torchrun", "8", "sys.exit(main())") + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\ntrain.py FAILED\n------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-11-29_02:00:00\n  host      : pi-worker-0\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 14)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 14\n============================================================",
			"rank 1 of torchrun ended with exit code -9: Signal 9 (SIGKILL) received by PID 14", "", "",
		},
		"torchrun, with a record": {
			title + call("/usr/local/bin/torchrun", "8", "sys.exit(main())") + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\nRoot Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 14)\n  error_file: /tmp/torchelastic/error.json\n  traceback : " + title + indented("    ", call("/app/mesh.py", "7", "raise")+"ValueError: no cells"),
			"ValueError: no cells", "", "mesh.py, line 7",
		},
		"a launcher in Python": {mesh + "\n" + title + call("/usr/local/bin/accelerate", "8", "main()") + "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' returned non-zero exit status 1.", "ValueError: no cells", "", "mesh.py, line 7"},
		"a command":            {title + call("/app/a.py", "8", "run(check=True)") + "subprocess.CalledProcessError: Command '['ffmpeg']' returned non-zero exit status 1.", "subprocess.CalledProcessError: Command '['ffmpeg']' returned non-zero exit status 1.", "", "a.py, line 8"},
		// What the program handled.
		"logged, and went on":          {noted + lost + steps + mesh, "ValueError: no cells", "", "mesh.py, line 7"},
		"logged, and ended":            {noted + lost + "step 1", "ConnectionError: mlflow is away", "", "track.py, line 3"},
		"logged, and another rank":     {noted + lost + mesh, "ConnectionError: mlflow is away", "", "track.py, line 3"},
		"logged, and lost its peers":   {noted + lost + steps + title + "HorovodInternalError: Horovod has been shut down.", "ConnectionError: mlflow is away", "", "track.py, line 3"},
		"logged, a chain":              {noted + title + call("/app/a.py", "3", "x") + "OSError: away" + direct + lost + steps + mesh, "ValueError: no cells", "", "mesh.py, line 7"},
		"not logged":                   {lost + steps + mesh, "ConnectionError: mlflow is away", "", "track.py, line 3"},
		"not logged, by a rank":        {indented("[1,0]<stderr>:", lost) + indented("[1,0]<stdout>:", steps) + indented("[1,0]<stderr>:", mesh), "ValueError: no cells", "", "mesh.py, line 7"},
		"not logged, by a rank of 4":   {indented("[3] ", lost) + indented("[3] ", steps) + indented("[3] ", mesh), "ValueError: no cells", "", "mesh.py, line 7"},
		"a thread that ended":          {"Exception in thread Thread-1 (work):\n" + lost + steps + title + call("/app/a.py", "5", "get()") + "TimeoutError: no batch", "ConnectionError: mlflow is away", "", "track.py, line 3"},
		"what the interpreter ignores": {indented("[3] ", mesh+"\na\nb\nc\nd\nException ignored in: <function f>\n"+title+call("/app/b.py", "5", "x")+"AttributeError: x"), "ValueError: no cells", "", "mesh.py, line 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := strings.Split(test.log, "\n")
			found := FirstError(lines)
			if found == nil {
				found = &ErrorLine{}
			}
			first := ""
			if found.First != nil {
				first = found.First.Message
			}
			place, _ := "", ""
			if found.Line != "" {
				place, _ = RaisedAt(lines, found.Line)
			}
			if found.Message != test.message || first != test.first || place != test.place {
				t.Errorf("got %q (%s) after %q, want %q (%s) after %q", found.Message, place, first, test.message, test.place, test.first)
			}
		})
	}
}
