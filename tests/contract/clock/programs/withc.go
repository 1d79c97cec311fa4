//go:build cgo

package main

/*
#include <time.h>
static long long now(void) { return time(0); }
*/
import "C"
import "fmt"

func more() { fmt.Printf("now %d\n", int64(C.now())) }
