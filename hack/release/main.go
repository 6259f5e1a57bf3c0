// Command release makes the files of a release: an archive and a bill of materials for each program and platform, the
// manifest with which krew installs plimsoll as a kubectl plugin, and checksums of all files. The same sources, version, commit and
// date give the same bytes.
//
//	release archives [flags] FOLDER
//	release finish [flags] FOLDER
//
// finish reads what archives and other tools have written to the folder. make release runs both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// cli is the program that is built for all platforms, and that krew installs.
const cli = "plimsoll"

// release describes a release.
type release struct {
	folder                string
	version, commit, date string
	day                   time.Time
	platforms             []platform
	// programs are the folders of the programs in cmd.
	programs []string
	progress io.Writer
}

// platform is an operating system and an architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// environment returns the variables with which go builds for the platform.
func (p platform) environment() []string { return []string{"GOOS=" + p.os, "GOARCH=" + p.arch} }

// programsOf returns the programs that are released for a platform.
func (r *release) programsOf(p platform) []string {
	if p.os != "windows" {
		return r.programs
	}
	return []string{cli}
}

// allPlatforms are the platforms of a release.
const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

func run(ctx context.Context, arguments []string, progress io.Writer) error {
	if len(arguments) == 0 || arguments[0] != "archives" && arguments[0] != "finish" {
		return errors.New("usage: release archives|finish [flags] FOLDER")
	}
	r, err := parse(arguments[0], arguments[1:])
	if err != nil {
		return err
	}
	r.progress = progress
	if arguments[0] == "archives" {
		return r.writeArchives(ctx)
	}
	return r.finish()
}

// versions are the versions that krew and Helm accept.
var versions = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func parse(command string, arguments []string) (*release, error) {
	r := &release{}
	var platforms, programs string
	flags := flag.NewFlagSet("release "+command, flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "version, such as v0.1.0")
	flags.StringVar(&r.commit, "commit", "", "commit of the sources")
	flags.StringVar(&r.date, "date", "", "day of the commit, such as 2026-11-21")
	flags.StringVar(&platforms, "platforms", allPlatforms, "platforms, separated by commas")
	flags.StringVar(&programs, "programs", "", "programs, separated by commas; all if empty")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() != 1 {
		return nil, fmt.Errorf("found %d arguments: must be the folder of the release", flags.NArg())
	}
	r.folder = flags.Arg(0)
	if !versions.MatchString(r.version) {
		return nil, fmt.Errorf("-version: invalid value %q: must be a semantic version such as v0.1.0", r.version)
	}
	var err error
	if r.day, err = time.Parse(time.DateOnly, r.date); err != nil {
		return nil, fmt.Errorf("-date: invalid value %q: must be a day such as 2026-11-21", r.date)
	}
	for name := range strings.SplitSeq(platforms, ",") {
		system, architecture, found := strings.Cut(name, "/")
		if !found {
			return nil, fmt.Errorf("-platforms: invalid value %q: must be a list such as linux/amd64,darwin/arm64", platforms)
		}
		r.platforms = append(r.platforms, platform{system, architecture})
	}
	r.programs, err = selectPrograms(programs)
	return r, err
}

// selectPrograms returns the named programs, or all.
func selectPrograms(names string) ([]string, error) {
	entries, err := os.ReadDir("cmd")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	if names == "" {
		return all, nil
	}
	selected := strings.Split(names, ",")
	for _, name := range selected {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-programs: invalid value %q: must be a list of %s", names, strings.Join(all, ", "))
		}
	}
	return selected, nil
}
