package diagnose_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/codes"
)

// TestCallsOfHangs: what stuck ranks wait for follows from the calls of all of them.
func TestCallsOfHangs(t *testing.T) {
	t.Parallel()
	const polling, blocked, mixed = "all 2 ranks wait, since 10:00:00 UTC; polling: 0, 1", "all 2 ranks wait, since 10:00:00 UTC; blocked: 0, 1; rank 0 waits for input from a pipe", "all 2 ranks wait, since 10:00:00 UTC; blocked: 1; polling: 0"
	both := func(source string) []string { return []string{"ranks 0, 1: <module> (/code/halo.py:9) | " + source} }
	each := func(one, two string) []string {
		return []string{"rank 0: <module> (/code/a.py:9) | " + one, "rank 1: <module> (/code/a.py:12) | " + two}
	}
	for name, test := range map[string]struct {
		stall            string
		stacks           []string
		sentence, remedy string
	}{
		"all send":                      {polling, both("comm.Send(field, dest=other, tag=step)"), "All ranks are in a send, and none receives", "send and receive in one call"},
		"all send objects":              {polling, each("comm.send(a, dest=1)", "world.ssend(b, dest=0)"), "All ranks are in a send", "send and receive in one call"},
		"all send in C":                 {polling, both("lib.MPI_Ssend(buffer, 1, INT, 1, 0, world)"), "All ranks are in a send", "send and receive in one call"},
		"all receive":                   {polling, both("data = comm.recv(source=other)"), "Each rank waits for a message", "Compare the source, the tag"},
		"a send and another receive":    {polling, each("comm.Send(a, dest=1, tag=1)", "comm.Recv(b, source=0, tag=2)"), "Rank 0 is in a send and rank 1 is in a receive, and the two do not match", "a.py:9 (rank 0) and a.py:12 (rank 1)"},
		"a receive and a barrier":       {polling, each("x = comm.recv(source=1)", "comm.barrier()"), "Rank 0 is in a receive, and rank 1 has gone on to barrier without the matching call", "before barrier at a.py:12"},
		"a barrier and a send":          {polling, each("comm.Barrier()", "comm.Send(a, dest=0)"), "Rank 1 is in a send, and rank 0 has gone on to Barrier", "before Barrier at a.py:9"},
		"a rank that sends to itself":   {polling, each("comm.Ssend(a, dest=comm.rank)", "comm.Barrier()"), "Rank 0 waits for itself", "Correct the other rank of the call at a.py:9"},
		"a rank that receives by index": {polling, each("comm.bcast(a)", "x = comm.recv(source=1)"), "Rank 1 waits for itself", "Correct the other rank of the call at a.py:12"},
		"two collectives":               {polling, each("comm.bcast(a)", "comm.reduce(b)"), "Rank 0 calls bcast, and rank 1 calls reduce at another place", "bcast at a.py:9 (rank 0), or reduce at a.py:12 (rank 1)"},
		"collectives of libraries":      {polling, each("comm.Gatherv(a, b)", "dist.all_gather_into_tensor(a, b)"), "Rank 0 calls Gatherv, and rank 1 calls all_gather_into_tensor", "Gatherv at a.py:9 (rank 0)"},
		"join":                          {blocked, both("child.join()"), "Each rank waits for the end of its own thread or process, not for another rank", "Read the queue before join"},
		"join of one rank":              {mixed, each("comm.Barrier()", "workers[0].join()"), "Rank 1 waits for the end of its own thread or process, not for another rank; the others wait for it", "Read the queue before join"},
		"queue":                         {blocked, both("item = results.get()"), "Each rank waits for an item or a result", "fills the queue puts nothing"},
		"process":                       {blocked, both("proc.wait()"), "Each rank waits for a process that it has started", "PIPE"},
		"communicate":                   {blocked, both("out, _ = p.communicate()"), "Each rank waits for a process that it has started", "PIPE"},
		"future":                        {blocked, both("value = future.result()"), "Each rank waits for the results of its own pool", "spawn"},
		"pool":                          {blocked, both("parts = pool.map(decode, files)"), "Each rank waits for the results of its own pool", "spawn"},
		"event":                         {blocked, []string{"ranks 0, 1: wait (/usr/lib/python3.12/threading.py:655) < <module> (/code/halo.py:9) | ready.wait()"}, "Each rank waits for an event", "does not set the event"},
		"event by its name":             {blocked, both("loaded_event.wait()"), "Each rank waits for an event", "does not set the event"},
		"lock":                          {blocked, both("lock.acquire()"), "Each rank waits for a lock of its own threads", "RLock"},
		"input":                         {blocked, both("answer = input(\"go? \")"), "Each rank waits for input", "no terminal"},
		"accept":                        {blocked, both("peer, _ = server.accept()"), "Each rank waits for a connection to its port. ", "listen on all addresses"},
		"a rank of the world":           {polling, each("MPI.COMM_WORLD.recv(source=0)", "comm.Barrier()"), "Rank 0 waits for itself", "Correct the other rank of the call at a.py:9"},
		// Nothing is said that the calls do not show.
		"text.join":               {blocked, both("name = \"-\".join(parts)"), "The job is probably stuck", "Check that each receive"},
		"os.path.join":            {blocked, both("open(os.path.join(a, b))"), "The job is probably stuck", "Check that each receive"},
		"a dictionary":            {blocked, both("value = settings.get(\"lr\")"), "The job is probably stuck", "Check that each receive"},
		"a request of MPI":        {polling, both("request.wait()"), "The job is probably stuck", "Check that each receive"},
		"a join of what computes": {polling, both("child.join()"), "The job is probably stuck", "Check that each receive"},
		"a thread's own request":  {blocked, both("recv_ready.wait()"), "The job is probably stuck", "Check that each receive"},
		"a name with cond":        {blocked, both("second.wait()"), "The job is probably stuck", "Check that each receive"},
		"a future of mpi4py":      {blocked, []string{"ranks 0, 1: wait (/usr/lib/python3/site-packages/mpi4py/futures/_core.py:9) < main (/code/halo.py:9) | value = future.result()"}, "The job is probably stuck", "Check that each receive"},
		"a loop over other ranks": {polling, each("comm.send(w, dest=rank)", "comm.Barrier()"), "Rank 0 is in a send, and rank 1 has gone on to Barrier", "Make the call that matches"},
		"another communicator":    {polling, each("comm.bcast(a)", "x = row_comm.recv(source=1)"), "Rank 1 is in a receive, and rank 0 has gone on to bcast", "Make the call that matches"},
		"the rank in another one": {polling, each("comm.bcast(a)", "x = comm.recv(source=row.rank)"), "Rank 1 is in a receive, and rank 0 has gone on to bcast", "Make the call that matches"},
		"pauses in loops":         {"all 2 ranks wait, since 10:00:00 UTC; sleeping: 0; polling: 1", each("for p in comm.scatter(parts): time.sleep(30)", "comm.reduce(b)"), "The job is probably stuck", "Check that each receive"},
		"names like collectives":  {polling, each("loader.scan_folder(path)", "schedule.reduce_lr(0.1)"), "The job is probably stuck", "Check that each receive"},
		"a pause in a condition":  {polling, each("while comm.allreduce(n): time.sleep(1)", "comm.reduce(b)"), "The job is probably stuck", "Check that each receive"},
		"one collective":          {polling, both("comm.allreduce(x)"), "The job is probably stuck", "Check that each receive"},
	} {
		found := stuck("mpi-agent: no progress: " + test.stall + "\nmpi-agent: stack of " + strings.Join(test.stacks, "\nmpi-agent: stack of ")).findings()
		if len(found) == 0 || found[0].Code != codes.RanksWaiting || !strings.Contains(found[0].Summary, test.sentence) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		told := ""
		for _, r := range found[0].Remedies {
			told += r.Text + "\n"
		}
		if first := found[0].Remedies[0].Text; !strings.Contains(first, test.remedy) && (test.sentence != "The job is probably stuck" || !strings.Contains(told, test.remedy)) {
			t.Errorf("%s: remedies are %s", name, told)
		}
		sound(t, found[0])
	}
}
