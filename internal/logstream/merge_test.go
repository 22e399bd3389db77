package logstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(milliseconds int) time.Time {
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

func said(pod string, milliseconds ...int) (lines []Line) {
	for _, ms := range milliseconds {
		lines = append(lines, Line{Pod: pod, Time: at(ms), Text: fmt.Sprint(ms)})
	}
	return lines
}

// drain takes all lines until there will be no more.
func drain(ctx context.Context, m *merger) (texts []string) {
	for lines := m.next(ctx); len(lines) > 0; lines = m.next(ctx) {
		for _, line := range lines {
			texts = append(texts, line.Pod+line.Text)
		}
	}
	return texts
}

func TestLogsReadToTheirEndAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMerger(nil)
		a, b := m.add(true), m.add(true)
		m.close()
		go func() {
			a.opened()
			_ = a.push(t.Context(), said("a", 1, 4, 5), at(5))
			time.Sleep(3 * time.Second)
			_ = a.push(t.Context(), said("a", 7), at(7))
			a.end()
		}()
		go func() {
			time.Sleep(2 * time.Second)
			b.opened()
			_ = b.push(t.Context(), said("b", 2, 3), at(3))
			time.Sleep(2 * time.Second)
			_ = b.push(t.Context(), said("b", 6, 8), at(8))
			b.end()
		}()
		if diff := cmp.Diff([]string{"a1", "b2", "b3", "a4", "a5", "b6", "a7", "b8"}, drain(t.Context(), m)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestLinesWaitForEachOtherWithinAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := at(0)
		m := newMerger(nil)
		a, b := m.add(false), m.add(false)
		a.opened()
		b.opened()
		time.Sleep(time.Minute)
		go func() {
			_ = a.push(t.Context(), []Line{{Pod: "a", Time: start.Add(time.Minute + 10*time.Millisecond), Text: "2"}}, time.Time{})
			time.Sleep(100 * time.Millisecond)
			_ = b.push(t.Context(), []Line{{Pod: "b", Time: start.Add(time.Minute), Text: "1"}}, time.Time{})
		}()
		before := time.Now()
		var got []string
		for len(got) < 2 {
			for _, line := range m.next(t.Context()) {
				got = append(got, line.Pod)
			}
		}
		if !slices.Equal(got, []string{"b", "a"}) {
			t.Errorf("came as %v", got)
		}
		if took := time.Since(before); took > window {
			t.Errorf("took %s", took)
		}
	})
}

func TestALogThatDoesNotAnswerHoldsOthersUpForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMerger(nil)
		m.add(false)
		a := m.add(false)
		a.opened()
		go func() { _ = a.push(t.Context(), said("a", 1), at(1)) }()
		before := time.Now()
		if lines := m.next(t.Context()); len(lines) != 1 || time.Since(before) != opening {
			t.Errorf("%d lines after %s", len(lines), time.Since(before))
		}
	})
}

func TestReadersWaitWhileNobodyTakesTheirLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMerger(nil)
		var pushed sync.Map
		var readers sync.WaitGroup
		const logs, lines, size = 4, 4000, 10_000
		for i := range logs {
			q := m.add(false)
			q.opened()
			readers.Go(func() {
				defer q.end()
				for n := range lines {
					_ = q.push(t.Context(), []Line{{Pod: fmt.Sprint(i), Time: time.Now(), Text: strings.Repeat("x", size)}}, time.Now())
					pushed.Store(i, n)
				}
			})
		}
		synctest.Wait()
		held := 0
		pushed.Range(func(_, n any) bool {
			held += n.(int) + 1
			return true
		})
		if bytes := held * size; bytes > budget+logs*size || bytes < budget/2 {
			t.Errorf("%d bytes are held, of %d", bytes, budget)
		}
		go func() {
			readers.Wait()
			m.close()
		}()
		if got := len(drain(t.Context(), m)); got != logs*lines {
			t.Errorf("%d lines came, want %d", got, logs*lines)
		}
	})
}

func TestOneBusyLogDoesNotWaitForQuietOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMerger(nil)
		for range 7 {
			m.add(false).opened()
		}
		busy := m.add(false)
		busy.opened()
		time.Sleep(time.Minute)
		const lines = 400_000
		go func() {
			for range lines / 100 {
				batch := make([]Line, 100)
				for i := range batch {
					batch[i] = Line{Time: time.Now(), Text: strings.Repeat("x", 100)}
				}
				_ = busy.push(t.Context(), batch, time.Now())
			}
			busy.end()
		}()
		before, got := time.Now(), 0
		for got < lines {
			got += len(m.next(t.Context()))
		}
		if took := time.Since(before); took > time.Second {
			t.Errorf("%d lines waited %s", lines, took)
		}
	})
}

func TestNextEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMerger(nil)
		m.add(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if lines := m.next(ctx); lines != nil {
			t.Errorf("%d lines", len(lines))
		}
	})
}

// A log is cut again and again, each time somewhere else, and asked for from a whole second on.
func TestResumeTakesEachLineOnce(t *testing.T) {
	for seed := range 200 {
		dice := rand.New(rand.NewPCG(uint64(seed), 1))
		var log []time.Time
		now := at(0)
		for range 200 {
			now = now.Add(time.Duration(dice.IntN(4)) * 100 * time.Millisecond)
			// Two pipes may be a little out of order.
			log = append(log, now.Add(-time.Duration(dice.IntN(3))*time.Millisecond))
		}
		var r Resume
		var got []int
		for readTo := 0; readTo < len(log); {
			r.Again()
			cut := min(len(log), readTo+dice.IntN(30))
			for i, stamp := range log[:cut] {
				if stamp.Before(r.From()) {
					continue
				}
				if r.IsNew(stamp) {
					got = append(got, i)
				}
			}
			readTo = max(readTo, cut)
		}
		for want, index := range got {
			if want != index {
				t.Fatalf("seed %d: line %d came as number %d", seed, index, want)
			}
		}
		if len(got) != len(log) {
			t.Fatalf("seed %d: %d of %d lines", seed, len(got), len(log))
		}
	}
}

func TestResumeSeesThatALogWasBegunAnew(t *testing.T) {
	var r Resume
	r.Again()
	for _, ms := range []int{100, 200, 300} {
		r.IsNew(at(ms))
	}
	r.Again()
	if !r.IsNew(at(400)) || !r.IsNew(at(500)) {
		t.Error("lines of the new log are taken for old ones")
	}
	r.Again()
	if r.IsNew(at(400)) || r.IsNew(at(500)) || !r.IsNew(at(600)) {
		t.Error("the new log is read from another place")
	}
}

// TestBudgetOfAllMerges fills the queues of a run whose lines nobody takes: another run still gets its lines, in order.
func TestBudgetOfAllMerges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, size, slow = 4 << 20, 10 << 10, 20
		shared := NewBudget(limit)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fill := func(m *merger) {
			q := m.add(false)
			q.opened()
			go func() {
				for i := 0; ; i++ {
					if q.push(ctx, []Line{{Time: at(i), Text: strings.Repeat("x", size)}}, at(i)) != nil {
						return
					}
				}
			}()
		}
		var stuck []*merger
		for range slow {
			m := newMerger(shared)
			fill(m)
			stuck = append(stuck, m)
		}
		synctest.Wait()
		if most := int64(limit + slow*(leastMerged+size+lineCost)); shared.Used() < limit || shared.Used() > most {
			t.Errorf("%d bytes are held, of %d", shared.Used(), limit)
		}
		other := newMerger(shared)
		a, b := other.add(false), other.add(false)
		other.close()
		for _, q := range []*queue{a, b} {
			q.opened()
		}
		go func() {
			for i := range 200 {
				for name, q := range map[string]*queue{"a": a, "b": b} {
					_ = q.push(ctx, []Line{{Pod: name, Time: at(i), Text: strings.Repeat("x", size)}}, at(i))
				}
			}
			a.end()
			b.end()
		}()
		lines, last := 0, time.Time{}
		for taken := other.next(ctx); len(taken) > 0; taken = other.next(ctx) {
			for _, line := range taken {
				if line.Time.Before(last) {
					t.Errorf("the line of %s comes after that of %s", line.Time, last)
				}
				lines, last = lines+1, line.Time
			}
		}
		if lines != 400 {
			t.Errorf("%d of 400 lines", lines)
		}
		cancel()
		synctest.Wait()
		for _, m := range stuck {
			m.release()
		}
		if shared.Used() != 0 {
			t.Errorf("%d bytes are held after the end", shared.Used())
		}
	})
}
