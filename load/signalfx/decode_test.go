package signalfx

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestDecodeWindow(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		raw  string
		want map[string]samples
	}{
		"the reference's example": {
			`{"code":200,"data":{"AAAAAAAAAAA":[[1705449600000,227.07710813246499]],"AAAAAAAAAAE":[[1705449600000,` +
				`122.4751087329639]]},"errors":[]}`,
			map[string]samples{"AAAAAAAAAAA": {{1705449600000, 227.07710813246499}}, "AAAAAAAAAAE": {{1705449600000, 122.4751087329639}}},
		},
		"empty":                {`{"data":{},"errors":null}`, map[string]samples{}},
		"blanks and exponents": {"{\"data\": {\"a\": [ [ 1.7054496E12 ,\n 4e1 ] ]}}", map[string]samples{"a": {{1705449600000, 40}}}},
		"no samples":           {`{"data":{"a":[],"b":null}}`, map[string]samples{"a": {}, "b": nil}},
		"invalid values": {
			`{"data":{"a":[[1,null],[2,"NaN"],[3,"4"],[4,[5,6]],[5,1e999]]}}`,
			map[string]samples{"a": {{1, nan}, {2, nan}, {3, nan}, {4, nan}, {5, nan}}},
		},
		"invalid times": {
			`{"data":{"a":[[null,1],["2",1],[-3,1],[1e300,1],[1e999,1]]}}`,
			map[string]samples{"a": {{0, nan}, {0, nan}, {0, nan}, {0, nan}, {0, nan}}},
		},
		"invalid series": {`{"data":{"a":{"x":1},"b":7,"c":[[1,2]]}}`, map[string]samples{"a": {{0, nan}}, "b": {{0, nan}}, "c": {{1, 2}}}},
		"brackets inside values": {
			`{"data":{"a":[["[1","2]"],[[1,2],3],[1,2,3]]}}`,
			map[string]samples{"a": {{0, nan}, {0, nan}, {1, nan}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeWindow([]byte(tc.raw))
			must.Succeed(t, err)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(sample{}), cmpopts.EquateNaNs()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzDecode decodes arbitrary input as both responses and computes the load: decoding returns errors of
// package load, and all loads are valid.
func FuzzDecode(f *testing.F) {
	const window = `{"data":{"a":[[1795175940000,20],[1795176000000,40]],"b":[[1795176000000,null]]},"errors":[]}`
	const series = `{"count":2,"results":[{"id":"a","metric":"cpu.utilization","dimensions":{"host":"node-1"}},{"id":"b",` +
		`"dimensions":{"host":7}}]}`
	f.Add([]byte(window), []byte(series))
	f.Add([]byte(`{"data":{"a":[[1795176000000,1e308],[1795176000000,5e-324]]}}`), []byte(series))
	f.Add([]byte(`{"data":{"a":{},"b":[[]]},"errors":["no"]}`), []byte(`{"count":1,"isPartialCount":true,"results":[null]}`))
	f.Add([]byte(`{"data":null,"message":"\ud800"}`), []byte(`{"results":[],"code":500}`))
	f.Fuzz(func(t *testing.T, window, series []byte) {
		hosts := map[string]string{}
		if answer, err := decodeSeries(series); err == nil {
			for _, result := range answer.Results {
				host, _ := result.Dimensions["host"].(string)
				hosts[result.ID] = host
			}
		} else if load.ReasonOf(err) != load.Invalid {
			t.Errorf("reason %q", load.ReasonOf(err))
		}
		data, err := decodeWindow(window)
		if err != nil {
			if load.ReasonOf(err) != load.Invalid {
				t.Errorf("reason %q", load.ReasonOf(err))
			}
			return
		}
		total := 0
		for id, list := range data {
			total += len(list)
			if _, known := hosts[id]; !known {
				hosts[id] = id
			}
		}
		l := limits{start: noon.Add(-15 * time.Minute), end: noon.Add(time.Minute), fresh: noon.Add(-5 * time.Minute)}
		p := collect(data, hosts, func(host string) (string, bool) { return host, true }, l)
		if p.rejected > total+len(data) || p.unmatched > len(data) || len(p.nodes)+len(p.stale)+p.unmatched > len(data) {
			t.Errorf("%d rejected, %d unmatched, %d nodes and %d stale ones of %d samples in %d series", p.rejected, p.unmatched,
				len(p.nodes), len(p.stale), total, len(data))
		}
		for name, node := range p.nodes {
			if !(node.Mean >= 0 && node.Mean <= 1 && node.StdDev >= 0 && node.StdDev <= 0.5) || name == "" ||
				node.newest.Before(l.fresh) || node.newest.After(l.end) {
				t.Errorf("node %q: %+v", name, node)
			}
		}
	})
}
