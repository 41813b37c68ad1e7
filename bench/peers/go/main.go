// Libraries in Go, measured as bench/src/bin/peer.rs says: peer LIBRARY LOAD TASKS MILLIS URL FILE
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const poll = 2 * time.Millisecond

var ctx = context.Background()

// Acquires a lock with a lease that lasts so long, and returns its release.
type acquire func(task int, name string, ttl time.Duration) func() error

func check[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func connect(library, url string, tasks int, ttl time.Duration) acquire {
	if library == "etcd-go" {
		client := check(clientv3.New(clientv3.Config{Endpoints: []string{strings.TrimPrefix(url, "etcd://")}}))
		sessions := make([]*concurrency.Session, tasks)
		for task := range sessions {
			sessions[task] = check(concurrency.NewSession(client, concurrency.WithTTL(int(ttl.Seconds()))))
		}
		return func(task int, name string, _ time.Duration) func() error {
			mutex := concurrency.NewMutex(sessions[task], "/"+name)
			check(0, mutex.Lock(ctx))
			return func() error { return mutex.Unlock(ctx) }
		}
	}
	options := check(redis.ParseURL(url))
	options.PoolSize = tasks + 2
	client := redis.NewClient(options)
	if library == "redislock" {
		locks := redislock.New(client)
		retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(poll)}
		return func(_ int, name string, ttl time.Duration) func() error {
			// Obtain gives up when a ttl has passed, unless its context says how long.
			patient, cancel := context.WithTimeout(ctx, time.Minute)
			lock := check(locks.Obtain(patient, name, ttl, retry))
			cancel()
			return func() error { return lock.Release(ctx) }
		}
	}
	locks := redsync.New(goredis.NewPool(client))
	return func(_ int, name string, ttl time.Duration) func() error {
		mutex := locks.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1000000), redsync.WithRetryDelay(poll))
		check(0, mutex.Lock())
		return func() error {
			_, err := mutex.Unlock()
			return err
		}
	}
}

func toldToGoOn() {
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
}

func main() {
	library, load, url, file := os.Args[1], os.Args[2], os.Args[5], os.Args[6]
	tasks := check(strconv.Atoi(os.Args[3]))
	span := time.Duration(check(strconv.Atoi(os.Args[4]))) * time.Millisecond
	if load == "pause" {
		connect(library, url, 1, span)(0, library+":0", span)
		toldToGoOn()
		check(0, os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600))
		fmt.Println("stored")
		return // a lease that ended cannot be released
	}
	ttl := 10 * time.Second
	locks := connect(library, url, tasks, ttl)
	toldToGoOn()
	start := time.Now()
	passes := make([][][2]time.Duration, tasks)
	var running sync.WaitGroup
	for task := range tasks {
		name := library + ":0"
		if load != "contest" {
			name = library + ":" + strconv.Itoa(task)
		}
		running.Go(func() {
			for time.Since(start) < span {
				before := time.Since(start)
				release := locks(task, name, ttl)
				granted := time.Since(start)
				check(0, release())
				pass := [2]time.Duration{before, time.Since(start)}
				if load == "contest" {
					pass = [2]time.Duration{granted, granted}
				}
				passes[task] = append(passes[task], pass)
			}
		})
	}
	running.Wait()
	fmt.Println("done")
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for task, done := range passes {
		for _, pass := range done {
			fmt.Fprintln(out, task, pass[0].Nanoseconds(), pass[1].Nanoseconds())
		}
	}
}
