// Command work is the program of all containers on the real nodes. It uses CPU time or memory as its arguments say:
//
//	work pause                                waits
//	work burn -cpu 40                         uses 40 millicores
//	work burn -cpu 40 -amplitude 20 -wave 60s uses 20 to 60 millicores, as a sine
//	work burn -values 10,35,20 -step 20s -epoch 1790000000
//	                                          uses the value of the present step, in millicores: the first one from second -epoch on, then
//	                                          the next ones, and the first one again
//	work serve -work 1ms                      answers each request after 1 ms of CPU time, one request at a time
//	work memory -mib 64                       holds 64 MiB
//
// Work is CPU time, not time: it takes longer on a busy machine, but is not more. All modes serve GET /account on port 8080, which is the
// program's own account of the CPU time that it had to use and has used.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Account is the CPU time in seconds since the start. The JSON is read by the experiment.
type Account struct {
	// Wanted is what the program had to use, Done what it has used. Dropped was late by more than the backlog and was given up.
	Wanted  float64 `json:"wanted"`
	Done    float64 `json:"done"`
	Dropped float64 `json:"dropped"`
}

// account is the account of this process.
var account struct {
	sync.Mutex
	Account
}

// sink keeps the compiler from removing work without a result.
var sink float64 //nolint:unused // see above

// threadTime returns the CPU time that the current thread has used.
func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}

// burn uses CPU time of the current thread, which must be locked.
func burn(d time.Duration) {
	for end := threadTime() + d; threadTime() < end; {
		for i := range 500 {
			sink += math.Sqrt(float64(i))
		}
	}
}

// load is the CPU time per time that a burner uses.
type load struct {
	cpu, amplitude float64 // millicores
	wave           time.Duration
	values         []float64
	step           time.Duration
	epoch          int64
}

// rateAt returns the load at a time in millicores.
func (l *load) rateAt(now time.Time, since time.Duration) float64 {
	switch {
	case len(l.values) > 0:
		steps := now.Sub(time.Unix(l.epoch, 0)) / l.step
		n := time.Duration(len(l.values))
		return l.values[((steps%n)+n)%n]
	case l.wave > 0:
		return max(l.cpu+l.amplitude*math.Sin(2*math.Pi*float64(since)/float64(l.wave)), 0)
	}
	return l.cpu
}

const (
	// tick is the time between two pieces of work. Work that is late by more than backlog is dropped, as clients that wait in vain give up.
	tick    = 100 * time.Millisecond
	backlog = 2 * time.Second
)

// run burns until the process ends.
func (l *load) run() {
	runtime.LockOSThread()
	start := time.Now()
	last := start
	var owed time.Duration
	for {
		time.Sleep(tick) //nolint:forbidigo // the load is by the clock
		now := time.Now()
		rate := l.rateAt(now, now.Sub(start)) / 1000
		wanted := time.Duration(rate * float64(now.Sub(last)))
		last = now
		owed += wanted
		dropped := max(owed-time.Duration(rate*float64(backlog)), 0)
		owed -= dropped
		// At most 20 ms in one go, so that the clock is read often.
		piece := min(owed, 20*time.Millisecond)
		burn(piece)
		owed -= piece
		account.Lock()
		account.Wanted += wanted.Seconds()
		account.Done += piece.Seconds()
		account.Dropped += dropped.Seconds()
		account.Unlock()
	}
}

// serve answers requests after some CPU time, one at a time, as a process with one thread does.
func serve(work time.Duration) http.HandlerFunc {
	var one sync.Mutex
	return func(w http.ResponseWriter, _ *http.Request) {
		one.Lock()
		defer one.Unlock()
		runtime.LockOSThread()
		burn(work)
		runtime.UnlockOSThread()
		account.Lock()
		account.Wanted += work.Seconds()
		account.Done += work.Seconds()
		account.Unlock()
		fmt.Fprintln(w, "ok")
	}
}

// hold holds memory until the process ends.
func hold(mib int) {
	held := make([]byte, mib<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	fmt.Println("holding", mib, "MiB")
	<-make(chan struct{})
	runtime.KeepAlive(held)
}

func main() {
	runtime.GOMAXPROCS(1)
	mode := "pause"
	args := os.Args[1:]
	if len(args) > 0 {
		mode, args = args[0], args[1:]
	}
	var l load
	flags := flag.NewFlagSet(mode, flag.ExitOnError)
	flags.Float64Var(&l.cpu, "cpu", 50, "millicores")
	flags.Float64Var(&l.amplitude, "amplitude", 0, "millicores of the sine")
	flags.DurationVar(&l.wave, "wave", 0, "period of the sine")
	flags.DurationVar(&l.step, "step", 20*time.Second, "time of each of the values")
	flags.Int64Var(&l.epoch, "epoch", 0, "second in which the first value begins")
	values := flags.String("values", "", "millicores by step, separated by commas")
	work := flags.Duration("work", time.Millisecond, "CPU time of a request")
	mib := flags.Int("mib", 16, "MiB to hold")
	after := flags.Duration("for", 0, "exit after this time; 0: never")
	code := flags.Int("code", 0, "exit code")
	grace := flags.Duration("grace", 0, "time from SIGTERM to exit")
	_ = flags.Parse(args)
	for text := range strings.SplitSeq(*values, ",") {
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			l.values = append(l.values, x)
		}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if *after > 0 {
		time.AfterFunc(*after, func() { os.Exit(*code) })
	}
	http.HandleFunc("/account", func(w http.ResponseWriter, _ *http.Request) {
		account.Lock()
		defer account.Unlock()
		_ = json.NewEncoder(w).Encode(account.Account)
	})
	switch mode {
	case "pause":
	case "burn":
		go l.run()
	case "serve":
		http.HandleFunc("/", serve(*work))
	case "memory":
		go hold(*mib)
	default:
		fmt.Printf("mode: invalid value %q: must be pause, burn, serve or memory\n", mode)
		os.Exit(2)
	}
	if mode != "pause" {
		go func() { fmt.Println(http.ListenAndServe(":8080", nil)); os.Exit(1) }()
	}
	<-stop
	time.Sleep(*grace) //nolint:forbidigo // the time is an argument
}
