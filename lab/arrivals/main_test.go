package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// write writes files to a folder, compressed if their name ends with .gz.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		raw := []byte(content)
		if strings.HasSuffix(name, ".gz") {
			var zipped bytes.Buffer
			w := gzip.NewWriter(&zipped)
			if _, err := w.Write(raw); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			raw = zipped.Bytes()
		}
		if err := os.WriteFile(filepath.Join(folder, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestArrivals converts a trace of two days: machines of the first day that still run have a node at the start.
func TestArrivals(t *testing.T) {
	files := map[string]string{
		"flav_map.txt": "1,1.75 b\n16,112 d\n", "v1.interval_map.txt": "0 0\n300 1\n600 2\n900 2\n",
		"v1.dev.txt.gz":          "0 b,d,|,b,|,\n86400 d,|,\n172500 b,b,|,\n",
		"v1.dev.c2100000.txt.gz": "0 U1,C2,|,C7,|,\n86400 U2,|,\n172500 U0,C0,|,\n",
	}
	out := filepath.Join(t.TempDir(), "out.ndjson.gz")
	if err := run(write(t, files), out, 1, 0); err != nil {
		t.Fatal(err)
	}
	read, err := recording.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	// The recording is from 86,400 to 172,800. Of the first day, d and the second b still run; d of 86,400 runs for the middle of
	// bin 2, 750 s; one of the last two ends at once.
	var before, ended int
	for _, p := range read.Pods {
		switch {
		case p.Created < 0:
			before++
		case p.Ended != recording.Never:
			ended++
		}
	}
	if len(read.Pods) != 5 || before != 2 || ended != 2 || read.About.Seconds() != 86400 {
		t.Errorf("%d pods, %d from before, %d ended, %d s; want 5, 2, 2, 86400", len(read.Pods), before, ended, read.About.Seconds())
	}
	for _, p := range read.Pods {
		if p.Ended != recording.Never && p.Object.Spec.Containers[0].Resources.Requests.Cpu().Value() == 16 && p.Ended-p.Created != 750 {
			t.Errorf("run time %d, want 750", p.Ended-p.Created)
		}
	}
	files["v1.dev.c2100000.txt.gz"] = "0 U1,C2,|,C7,|,\n86400 U9,|,\n172500 U0,C0,|,\n"
	const want = `run times, line 2: found run time "U9": must be U or C and a bin from 0 to 2`
	if err := run(write(t, files), out, 1, 0); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestServices converts four instances: one that stays, one of a GPU node, one that is created, and one that ends before it has a node.
func TestServices(t *testing.T) {
	const header = "role,app_name,cpu_request,memory_request,creation_time,scheduled_time,deletion_time\n"
	files := map[string]string{servicesFile: header +
		"CN,app_0,64,320.0,,,\nHN,app_0,8,40,,,\nCN,app_1,96,480,100,159,3600\nCN,app_1,96,480,100,900,800\n"}
	out := filepath.Join(t.TempDir(), "out.ndjson.gz")
	if err := run(write(t, files), out, 1, 0); err != nil {
		t.Fatal(err)
	}
	read, err := recording.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Pods) != 2 || read.About.Seconds() != servicesDays*day {
		t.Fatalf("%d pods in %d s, want 2", len(read.Pods), read.About.Seconds())
	}
	stays, created := read.Pods[0], read.Pods[1]
	if requests := recording.PodAmounts(stays.Object); stays.Created >= 0 || stays.Ended != recording.Never || requests.CPU != 8000 ||
		requests.Memory != 40<<30 || created.Created != 100 || created.Scheduled != 159 || created.Ended != 3600 {
		t.Errorf("%+v, %+v", stays, created)
	}
	if err := run(write(t, files), out, 1, 5); err != nil { // app_0 stays, app_1 runs for 0.002 of the time
		t.Fatal(err)
	}
	if read, err = recording.Open(out); err != nil || len(read.Pods) != 1 || read.Pods[0].Object.Namespace != "app-1" {
		t.Errorf("with turnover: %d pods, %v", len(read.Pods), err)
	}
	files[servicesFile] = header + "CN,app_0,many,320.0,,,\n"
	if err := run(write(t, files), out, 1, 0); err == nil || !strings.Contains(err.Error(), "line 2, cpu_request: ") {
		t.Errorf("error %v", err)
	}
}
