// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

// Checks logs of history.c with Porcupine: linear LOG...
//
// Each page of a volume is a register. An operation without a return may take effect at any time
// after its call, or never. Exit status: 0 each log is linearizable; 1 one is not; 2 a log cannot
// be read; 3 Porcupine found no answer in time.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	read     = 0
	patience = 2 * time.Minute // for each page
)

// As history.c writes it.
type record struct {
	Call, Return, Value uint64
	Page, Kind          uint32
}

var register = porcupine.Model{
	Init: func() interface{} { return uint64(0) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		r := input.(record)
		if r.Kind == read {
			return r.Value == state.(uint64), state
		}
		return true, r.Value
	},
}

func load(path string) ([]record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) < 8 {
		return nil, fmt.Errorf("%s: too short", path)
	}
	records := make([]record, binary.LittleEndian.Uint64(data))
	return records, binary.Read(bytes.NewReader(data[8:]), binary.LittleEndian, records)
}

// Returns the operations of each page, and how many have no return.
func operationsOf(records []record) (map[uint32][]porcupine.Operation, int) {
	pages, open := map[uint32][]porcupine.Operation{}, 0
	for i, r := range records {
		if r.Call == 0 {
			continue // never begun
		}
		end := int64(r.Return)
		if r.Return == 0 {
			open++
			if r.Kind == read {
				continue // nobody knows what it read
			}
			end = math.MaxInt64
		}
		pages[r.Page] = append(pages[r.Page], porcupine.Operation{
			ClientId: i, Input: r, Output: nil, Call: int64(r.Call), Return: end})
	}
	return pages, open
}

func check(path string) int {
	records, err := load(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "linear:", err)
		return 2
	}
	pages, open := operationsOf(records)
	for page, operations := range pages {
		switch porcupine.CheckOperationsTimeout(register, operations, patience) {
		case porcupine.Illegal:
			fmt.Printf("%s: page %d is not linearizable\n", path, page)
			return 1
		case porcupine.Unknown:
			fmt.Printf("%s: page %d: no answer\n", path, page)
			return 3
		}
	}
	fmt.Printf("%d operations on %d pages, %d without a return: linearizable\n", len(records),
		len(pages), open)
	return 0
}

func main() {
	status := 0
	for _, path := range os.Args[1:] {
		if found := check(path); found > status {
			status = found
		}
	}
	os.Exit(status)
}
