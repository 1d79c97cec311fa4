package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func tell(what string, t time.Time) {
	fmt.Printf("%s %d.%09d\n", what, t.Unix(), t.Nanosecond())
}

func waited(began time.Time, wanted float64) {
	fmt.Printf("waited %.3f %.3f\n", time.Since(began).Seconds(), wanted)
}

func main() {
	tell("now", time.Now())
	seen := make(chan time.Time)
	for i := 0; i < 20; i++ {
		go func() { seen <- time.Now() }()
	}
	for i := 0; i < 20; i++ {
		tell("now", <-seen)
	}
	began := time.Now()
	time.Sleep(200 * time.Millisecond)
	waited(began, 0.2)
	began = time.Now()
	soon, cancel := context.WithDeadline(context.Background(), began.Add(200*time.Millisecond))
	<-soon.Done()
	cancel()
	waited(began, 0.2)
	if name, err := os.CreateTemp("", "go"); err == nil {
		if seen, err := name.Stat(); err == nil {
			tell("file", seen.ModTime())
		}
		os.Remove(name.Name())
	}
	more()
}
