# It hangs in the function that its argument names, and prints before that it is about to.
import _thread, os, queue, re, socket, sys, threading, time

def sleeps():
    ready(); time.sleep(600)

def awaits_lock():
    lock = threading.Lock()
    lock.acquire()
    ready(); lock.acquire()

def receives():
    one, other = socket.socketpair()
    ready(); one.recv(1)

def loops():
    ready()
    while True:
        pass

def computes():
    ready(); re.match("(a+)+$", "a" * 64 + "b")

def threads():
    for name in sys.argv[2:]:
        threading.Thread(target=globals()[name], daemon=True).start()
    ready(); time.sleep(600)

def awaits_item():
    started.release(); queue.Queue().get()

def recurses(depth=100):
    if depth:
        recurses(depth - 1)
    ready(); time.sleep(600)

def long_lines():
    # A table with differences that need more than one entry.
    # LONG
    ready(); time.sleep(600)

def generates():
    def generator():
        yield 1
        ready(); time.sleep(600)
    return sum(generator())

def sorts():
    sorted([2, 1], key=lambda item: (ready(), time.sleep(600)))

class Trainer:
    def step(self):
        ready(); time.sleep(600)

def methods():
    Trainer().step()

def ends():
    threading.Thread(target=awaits_item).start()
    started.acquire()
    ready()

def größen():
    ready(); time.sleep(600)

def ready():
    print("ready", flush=True)

started = _thread.allocate_lock()
started.acquire()
def main():
    globals()[sys.argv[1]]()

main()
