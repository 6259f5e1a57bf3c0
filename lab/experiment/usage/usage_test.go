package usage

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// all accepts every workload.
func all(string) bool { return true }

// day returns the content of a file of a day: PerDay equal lines, the first of which is replaced.
func day(first, line string) string {
	return first + "\n" + strings.Repeat(line+"\n", PerDay-1)
}

// folder returns a folder with files: a name and a content in turn.
func folder(files ...string) fs.FS {
	f := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		f[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return f
}

// describe returns the workloads, machines and days of a set with the first and the last value.
func describe(set *Set) string {
	var b strings.Builder
	for _, w := range set.Workloads {
		fmt.Fprintf(&b, "%s:", w.Name)
		for _, m := range w.Machines {
			fmt.Fprintf(&b, " %s", m.Name)
			for _, d := range m.Days {
				fmt.Fprintf(&b, " %s CPU %v-%v", d.Name, d.CPU[0], d.CPU[PerDay-1])
				if d.Memory != nil {
					fmt.Fprintf(&b, " memory %v-%v", d.Memory[0], d.Memory[PerDay-1])
				}
			}
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestDaily(t *testing.T) {
	for name, test := range map[string]struct {
		set  string
		fs   fs.FS
		want string
	}{
		// Hosts contain underscores: the slice is the last two parts, or root.
		"PlanetLab": {PlanetLab, folder(
			"20110306/host_a_site_x", day("7", "8"), "20110303/host_a_site_x", day("1", "2"), "20110303/host_b_site_x", day("3", "4"),
			"20110303/host_a_root", day("5", "6"), "README.md", "text", "20110303/.hidden", "text",
		), "root: host_a_root 20110303 CPU 5-6; " +
			"site_x: host_a_site_x 20110303 CPU 1-2 20110306 CPU 7-8 host_b_site_x 20110303 CPU 3-4"},
		// Days are ordered as numbers: 2 is before 10.
		"Google": {Google, folder(
			"GCD_VMs/vm_12_10", day("1.5 2", "3 4"), "GCD_VMs/vm_12_2", day("5 6", "7 116.25"),
		), "12: 12 002 CPU 5-7 memory 6-116.25 010 CPU 1.5-3 memory 2-4"},
		"carriage returns": {Google, folder("GCD_VMs/vm_12_10", day("1 2\r", "3 4\r")), "12: 12 010 CPU 1-3 memory 2-4"},
		"too few lines": {
			PlanetLab, folder("20110303/h_a_b", "1\n2\n"),
			"20110303/h_a_b: found 2 lines: must be 288, one for every 300 s of a day",
		},
		"too many lines": {
			PlanetLab, folder("20110303/h_a_b", day("1", "2")+"3\n"),
			"20110303/h_a_b: line 289: found more than 288 lines: must be one for every 300 s of a day",
		},
		"not a number": {
			PlanetLab, folder("20110303/h_a_b", day("x", "2")),
			`20110303/h_a_b: line 1: CPU: found "x": must be a number from 0 to 1000`,
		},
		"negative": {
			Google, folder("GCD_VMs/vm_1_1", day("1 -2", "3 4")),
			`GCD_VMs/vm_1_1: line 1: memory: found "-2": must be a number from 0 to 1000`,
		},
		"NaN": {
			PlanetLab, folder("20110303/h_a_b", day("NaN", "2")),
			`20110303/h_a_b: line 1: CPU: found "NaN": must be a number from 0 to 1000`,
		},
		"two columns": {PlanetLab, folder("20110303/h_a_b", day("1 2", "2")), "20110303/h_a_b: line 1: found 2 numbers: must be CPU"},
		"one column":  {Google, folder("GCD_VMs/vm_1_1", day("1", "2 3")), "GCD_VMs/vm_1_1: line 1: found 1 numbers: must be CPU and memory"},
		"name": {
			Google, folder("GCD_VMs/vm_1", ""),
			`GCD_VMs/vm_1: found "vm_1": must be vm_JOB_DAY with a number of the job and of the day up to 999`,
		},
		"no files":     {Google, folder("other", ""), "found no files of google: the public files are " + Sources},
		"no dates":     {PlanetLab, folder("other", ""), "found no files of planetlab: the public files are " + Sources},
		"unknown name": {"azure", folder(), `invalid data set "azure": must be one of google, planetlab, bitbrains`},
	} {
		t.Run(name, func(t *testing.T) { check(t, test.fs, test.set, test.want) })
	}
}

// check compares a set, or the error.
func check(t *testing.T, f fs.FS, name, want string) {
	t.Helper()
	set, err := Open(f, name, all)
	got := fmt.Sprint(err)
	if err == nil {
		got = describe(set)
	}
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

const header = "Timestamp [ms];\tCPU cores;\tCPU capacity provisioned [MHZ];\tCPU usage [MHZ];\tCPU usage [%];\t" +
	"Memory capacity provisioned [KB];\tMemory usage [KB]\n"

// midnight is 2013-08-01 00:00:00 UTC.
const midnight = 1375315200

// row returns a row of Bitbrains.
func row(second int, cpu, memory float64) string {
	return fmt.Sprintf("%d;\t2;\t5000.5;\t%v;\t1.5;\t0.0;\t%v\n", midnight+second, cpu, memory)
}

// rows returns rows every five minutes of one day.
func rows(start int, cpu float64) string {
	var b strings.Builder
	for i := range PerDay {
		b.WriteString(row(start+i*Step, cpu, 10*cpu))
	}
	return b.String()
}

// firstLines returns the first lines of a text.
func firstLines(text string, n int) string {
	return strings.Join(strings.SplitAfter(text, "\n")[:n], "")
}

func TestBitbrains(t *testing.T) {
	july := header + rows(-2*24*3600, 1)
	for name, test := range map[string]struct{ august, want string }{
		"two days": {
			header + rows(0, 2) + rows(24*3600, 3),
			"vm-7: vm-7 2013-08-01 CPU 2-2 memory 20-20 2013-08-02 CPU 3-3 memory 30-30",
		},
		// The row at 00:03:19 follows 199 s later, and the first value fills the start of the day, the last value its end.
		"gaps": {
			header + row(600, 9, 90) + row(600+199, 8, 80) + firstLines(rows(900, 4), 200),
			"vm-7: vm-7 2013-08-01 CPU 9-4 memory 90-40",
		},
		// 143 values are less than half of a day.
		"too few values": {
			header + rows(0, 2) + firstLines(rows(24*3600, 3), 143),
			"vm-7: vm-7 2013-08-01 CPU 2-2 memory 20-20",
		},
		"no days": {header + row(0, 1, 1), "found no files of bitbrains: the public files are " + Sources},
		"no header": {
			rows(0, 2),
			`rnd/2013-8/7.csv: line 1: found "1375315200;\t2;\t5000.5;\t2;\t1.5;\t0.0;\t20": ` +
				"must be the names of the columns, the first is Timestamp",
		},
		"commas": {header + "1,2,3\n", "rnd/2013-8/7.csv: line 2: found 1 columns: must be at least 7, separated by semicolons"},
		"no number": {
			header + "1;2;3;x;5;6;7\n",
			`rnd/2013-8/7.csv: line 2: CPU: found "x": must be a number from 0 to 1.099511627776e+12`,
		},
		"late": {
			header + "1e10;2;3;4;5;6;7\n",
			`rnd/2013-8/7.csv: line 2: time: found "1e10": must be a number from 0 to 4.294967296e+09`,
		},
		"many lines": {
			header + strings.Repeat("1;2;3;4;5;6;7\n", maxRows),
			"rnd/2013-8/7.csv: line 65537: found more than 65536 lines: must be at most 65536",
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, folder("rnd/2013-7/7.csv", july, "rnd/2013-8/7.csv", test.august, "rnd/2013-8/notes.txt", ""), Bitbrains, test.want)
		})
	}
	set, err := Open(folder("rnd/2013-7/7.csv", july, "rnd/2013-8/7.csv", header+rows(0, 2)), Bitbrains, all)
	if err != nil {
		t.Fatal(err)
	}
	if m := set.Workloads[0].Machines[0]; m.Provisioned.CPU != 5000.5 || len(m.Before) != 1 || m.Before[0].Name != "2013-07-30" {
		t.Errorf("%v provisioned, %d days before", m.Provisioned, len(m.Before))
	}
}

// TestBounds verifies that large files and folders are refused.
func TestBounds(t *testing.T) {
	large := strings.Repeat("1", maxBytes+1)
	check(t, folder("20110303/h_a_b", large), PlanetLab, "20110303/h_a_b: found more than 16777216 bytes: must be at most 16777216")
	files := fstest.MapFS{}
	for i := range maxFiles + 1 {
		files[fmt.Sprintf("GCD_VMs/vm_%d_1", i)] = &fstest.MapFile{}
	}
	check(t, files, Google, "GCD_VMs: found 10001 files: must be at most 10000")
}

// TestHalf verifies that keep is asked, and that names are divided into halves that do not change.
func TestHalf(t *testing.T) {
	count := [2]int{}
	for i := range 1000 {
		count[Half(fmt.Sprintf("vm-%d", i))]++
	}
	if count[0] < 450 || count[0] > 550 {
		t.Errorf("halves of %v", count)
	}
	if Half("root") != 0 || Half("vm-1") != 0 || Half("vm-2") != 1 {
		t.Errorf("halves changed: %d %d %d", Half("root"), Half("vm-1"), Half("vm-2"))
	}
	files := folder("GCD_VMs/vm_1_1", day("1 1", "1 1"), "GCD_VMs/vm_2_1", "invalid")
	set, err := Open(files, Google, func(w string) bool { return w == "1" })
	if err != nil || len(set.Workloads) != 1 {
		t.Errorf("%v, %v", set, err)
	}
}

// FuzzOpen verifies that the sets of files with any content are valid, or an error that names a file.
func FuzzOpen(f *testing.F) {
	f.Add(day("1", "2"))
	f.Add(day("1 2", "3 4"))
	f.Add(header + rows(0, 2))
	f.Add(header + row(0, 1, 1) + "1;2")
	f.Fuzz(func(t *testing.T, content string) {
		files := folder("20110303/host_a_b", content, "GCD_VMs/vm_1_1", content, "rnd/2013-7/1.csv", content, "rnd/2013-8/1.csv", content)
		for _, name := range Sets {
			set, err := Open(files, name, all)
			if err != nil {
				if !strings.Contains(err.Error(), ": ") {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			m := set.Workloads[0].Machines[0]
			for _, d := range slices.Concat(m.Days, m.Before) {
				for _, values := range [][]float32{d.CPU, d.Memory} {
					if values == nil && name == PlanetLab {
						continue
					}
					if len(values) != PerDay || slices.ContainsFunc(values, func(v float32) bool { return !(v >= 0 && v <= maxAmount) }) {
						t.Errorf("%s: %v", name, d)
					}
				}
			}
		}
	})
}
