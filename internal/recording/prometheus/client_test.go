package prometheus

import (
	"encoding/json"
	"strings"
	"testing"
)

// decodeResponse decodes a response to a range query.
func decodeResponse(text string) (elements []element, warnings []string, err error) {
	d := &decoder{dec: json.NewDecoder(strings.NewReader(text)), want: "matrix", each: func(e *element) error {
		e.Values = append(points{}, e.Values...)
		elements = append(elements, *e)
		return nil
	}}
	err = d.response()
	return elements, d.warnings, err
}

func TestDecodeResponse(t *testing.T) {
	elements, warnings, err := decodeResponse(`{"status": "success", "data": {"resultType": "matrix", "result": [
		{"metric": {"pod": "a"}, "values": [[1000, "1.5"], [ 1060.5 , "NaN" ] ]}, {"metric": {}, "values": []}], "stats": {}},
		"warnings": ["partial"]}`)
	if err != nil || len(elements) != 2 || elements[0].Metric["pod"] != "a" || len(elements[0].Values) != 2 ||
		elements[0].Values[0] != (point{1000, 1.5}) || elements[0].Values[1].at != 1060.5 || len(elements[1].Values) != 0 || warnings[0] != "partial" {
		t.Errorf("%+v, warnings %v, error %v", elements, warnings, err)
	}
	for text, want := range map[string]string{
		`{"status":"error","errorType":"timeout","error":"slow"}`:                      "timeout: slow",
		`{"data":{"resultType":"vector","result":[]}}`:                                 "found a result of type vector: must be a matrix",
		`{"data":{"resultType":"matrix","result":{}}}`:                                 "found { in the response: must be [",
		`{"data":{"resultType":"matrix","result":[{"values":[["a","1"]]}]}}`:           "found an invalid point",
		`{"data":{"resultType":"matrix","result":[{"values":[[1,2]]}]}}`:               "found an invalid point",
		`{"data":{"resultType":"matrix","result":[{"values":{}}]}}`:                    "found an invalid point",
		`{"data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"2`: "cut off",
		`[]`: "found [ in the response",
		`{}`: "found a response without a result",
	} {
		if _, _, err := decodeResponse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

// FuzzDecodeResponse checks that no response crashes the decoder.
func FuzzDecodeResponse(f *testing.F) {
	f.Add(
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1,"2"],[2,"NaN"]]}]},"warnings":["w"]}`,
	)
	f.Add(`{"status":"error","errorType":"timeout","error":"slow"}`)
	f.Add(`{"data":{"resultType":"matrix","result":[{"values":[[1`)
	f.Fuzz(func(t *testing.T, text string) {
		elements, _, err := decodeResponse(text)
		for _, e := range elements {
			if err == nil && len(text) < len(e.Values) {
				t.Fatalf("%d points from %d bytes", len(e.Values), len(text))
			}
		}
	})
}
