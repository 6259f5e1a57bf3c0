package shadow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/files"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// Version and kind of the documents.
const (
	APIVersion = "shadow.plimsoll.dev/v1"
	dayKind    = "ShadowDay"
)

const (
	// resultsFolder is the folder with the results of each day, beside the recordings.
	resultsFolder = "results"
	// dayFormat is the format of the names of files with the results of a day.
	dayFormat = "2006-01-02"
	// maxDay is the largest size of a file in bytes. A window of an hour takes about 20 KB.
	maxDay = 64 << 20
	// maxRecommendation is the largest size of the recommendation in bytes: a workload takes about 100.
	maxRecommendation = 4 << 20
	// maxDays is the largest number of days.
	maxDays = 400
)

// Day has the results of one day.
type Day struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Windows    []*Window `json:"windows"`
}

// Store keeps the results of the last days in files, one for each day. It may be used by several goroutines.
type Store struct {
	folder string
	keep   time.Duration

	// Damaged are the errors of days that could not be read. Their files are renamed, so that they are not replaced.
	Damaged []error

	mu             sync.Mutex
	windows        []*Window // in the order of their start
	recommendation *recommend.Result
}

// damagedSuffix is appended to the name of a day that cannot be read.
const damagedSuffix = ".damaged"

// recommendationFile has the last recommendation.
const recommendationFile = "recommendation"

// Folder returns the folder with the results. Only the goroutine that adds results may use it for temporary files.
func (s *Store) Folder() string { return s.folder }

// Recommendation returns the last recommendation, nil if there is none.
func (s *Store) Recommendation() *recommend.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recommendation
}

// SetRecommendation writes a recommendation in place of the last one.
func (s *Store) SetRecommendation(r *recommend.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(s.folder, 0o700)
	}
	if err != nil {
		return err
	}
	s.recommendation = r
	return recording.ReplaceFile(filepath.Join(s.folder, recommendationFile), raw)
}

// OpenStore reads the results in a folder. A day that cannot be read is left out, see Damaged. Results that are older than keep are removed
// when others are added.
func OpenStore(folder string, keep time.Duration) (*Store, error) {
	s := &Store{folder: filepath.Join(folder, resultsFolder), keep: keep}
	entries, err := os.ReadDir(s.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries[max(0, len(entries)-maxDays):] {
		if _, ok := dayOf(entry.Name()); !ok {
			continue
		}
		day, err := readDay(filepath.Join(s.folder, entry.Name()))
		if err != nil {
			path := filepath.Join(s.folder, entry.Name())
			s.Damaged = append(s.Damaged, errors.Join(fmt.Errorf("%w: renamed to %s%s", err, entry.Name(), damagedSuffix),
				os.Rename(path, path+damagedSuffix)))
			continue
		}
		s.windows = append(s.windows, day.Windows...)
	}
	s.sort()
	if raw, err := files.Read(filepath.Join(s.folder, recommendationFile), maxRecommendation); err == nil {
		var r recommend.Result
		if json.Unmarshal(raw, &r) == nil { // else the next day replaces it
			s.recommendation = &r
		}
	}
	return s, nil
}

// dayOf returns the day of a file with results.
func dayOf(name string) (time.Time, bool) {
	stem, ok := strings.CutSuffix(name, ".json")
	day, err := time.Parse(dayFormat, stem)
	return day, ok && err == nil
}

func readDay(path string) (*Day, error) {
	raw, err := files.Read(path, maxDay)
	if err != nil {
		return nil, err
	}
	day := &Day{}
	if err := json.Unmarshal(raw, day); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if day.APIVersion != APIVersion || day.Kind != dayKind {
		return nil, fmt.Errorf("%s: found kind %q of apiVersion %q: must be %s of %s", path, day.Kind, day.APIVersion, dayKind, APIVersion)
	}
	day.Windows = slices.DeleteFunc(day.Windows, func(w *Window) bool { return w == nil })
	return day, nil
}

func (s *Store) sort() {
	slices.SortStableFunc(s.windows, func(a, b *Window) int { return a.From.Compare(b.From) })
}

// Has reports whether the store has the result of a recording.
func (s *Store) Has(file string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.windows, func(w *Window) bool { return w.File == filepath.Base(file) })
}

// Windows returns the windows that start at a time or later, in the order of their start.
func (s *Store) Windows(from time.Time) []*Window {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.windows, from, func(w *Window, t time.Time) int { return w.From.Compare(t) })
	return slices.Clone(s.windows[i:])
}

// Add writes the result of a window, and removes the days that are too old at a time.
func (s *Store) Add(w *Window, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	day := Day{APIVersion: APIVersion, Kind: dayKind}
	name := w.From.UTC().Format(dayFormat)
	for _, other := range append(slices.Clone(s.windows), w) {
		if other.From.UTC().Format(dayFormat) == name {
			day.Windows = append(day.Windows, other)
		}
	}
	raw, err := json.Marshal(day)
	if err != nil {
		return err
	}
	if err := recording.ReplaceFile(filepath.Join(s.folder, name+".json"), raw); err != nil {
		return err
	}
	s.windows = append(s.windows, w)
	s.sort()
	return s.prune(now)
}

// prune removes the days that ended before the time to keep, and files that a killed process has left.
func (s *Store) prune(now time.Time) error {
	entries, err := os.ReadDir(s.folder)
	err = errors.Join(err, recording.RemoveTemporary(s.folder))
	oldest := now.Add(-s.keep)
	for _, entry := range entries {
		if day, ok := dayOf(entry.Name()); ok && day.AddDate(0, 0, 1).Before(oldest) {
			err = errors.Join(err, os.Remove(filepath.Join(s.folder, entry.Name())))
		}
	}
	s.windows = slices.DeleteFunc(s.windows, func(w *Window) bool { return w.From.Before(oldest.AddDate(0, 0, -1)) })
	return err
}
