// Command docversions builds the documentation site of a version into a folder with the sites of other versions:
//
//	docversions -version v0.1.0 [-url URL] FOLDER
//
// Each minor version has one site, FOLDER/v0.1, which a later patch replaces. FOLDER/versions.json lists them for the
// version selector of the theme, and FOLDER/index.html leads to the newest. A version before a release, such as
// v0.2.0-rc.1, changes nothing.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docversions:", err)
		os.Exit(1)
	}
}

// site is an entry of versions.json, in the format of the theme's version provider "mike".
type site struct {
	// Version is the name of the site's folder.
	Version string `json:"version"`
	Title   string `json:"title"`
	// Aliases contains "latest" for the newest version: the theme marks all others as outdated.
	Aliases []string `json:"aliases"`
}

const (
	list = "versions.json"
	// latest is the alias of the newest version.
	latest = "latest"
)

var versions = regexp.MustCompile(`^v(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.-]+)?$`)

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("docversions", flag.ContinueOnError)
	version := flags.String("version", "", "version, such as v0.1.0")
	url := flags.String("url", "https://plimsoll-k8s.github.io/plimsoll/", "address of the folder on the web")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	match := versions.FindStringSubmatch(*version)
	switch {
	case match == nil:
		return fmt.Errorf("-version: invalid value %q: must be a semantic version such as v0.1.0", *version)
	case flags.NArg() != 1:
		return fmt.Errorf("found %d arguments: must be the folder of all versions", flags.NArg())
	case match[4] != "":
		fmt.Fprintf(os.Stderr, "%s is not a release: its documentation is not published\n", *version)
		return nil
	}
	folder, name := flags.Arg(0), fmt.Sprintf("v%s.%s", match[1], match[2])
	sites, err := read(filepath.Join(folder, list))
	if err != nil {
		return err
	}
	if err := build(ctx, filepath.Join(folder, name), strings.TrimSuffix(*url, "/")+"/"+name+"/"); err != nil {
		return err
	}
	return write(folder, add(sites, site{Version: name, Title: *version}))
}

// read returns the sites of a list, none if it does not exist.
func read(file string) ([]site, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var sites []site
	if err := json.Unmarshal(raw, &sites); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, s := range sites {
		if !minors.MatchString(s.Version) {
			return nil, fmt.Errorf("%s: version: invalid value %q: must be a minor version such as v0.1", file, s.Version)
		}
	}
	return sites, nil
}

// build builds the site into a folder.
func build(ctx context.Context, folder, url string) error {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	mkdocs := exec.CommandContext(ctx, "mkdocs", "build", "--strict", "--quiet", "--site-dir", absolute)
	mkdocs.Env = append(os.Environ(), "DOCS_VERSIONS=mike", "DOCS_URL="+url)
	mkdocs.Stdout, mkdocs.Stderr = os.Stderr, os.Stderr
	return mkdocs.Run()
}

var minors = regexp.MustCompile(`^v(\d{1,6})\.(\d{1,6})$`)

// add returns the sites with another one, the newest first.
func add(sites []site, added site) []site {
	sites = append(slices.DeleteFunc(slices.Clone(sites), func(s site) bool { return s.Version == added.Version }), added)
	slices.SortFunc(sites, func(a, b site) int {
		x, y := numbers(a.Version), numbers(b.Version)
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	for i := range sites {
		sites[i].Aliases = []string{}
	}
	sites[0].Aliases = []string{latest}
	return sites
}

// numbers returns the numbers of a minor version.
func numbers(version string) (numbers [2]int) {
	for i, text := range minors.FindStringSubmatch(version)[1:] {
		numbers[i], _ = strconv.Atoi(text) // the expression matches digits only
	}
	return numbers
}

// index leads from the folder of all versions to the newest.
const index = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Plimsoll documentation</title>
<meta http-equiv="refresh" content="0; url=%[1]s/">
</head>
<body><a href="%[1]s/">Documentation of %[2]s</a></body>
</html>
`

// write writes the files beside the sites. The empty file .nojekyll makes GitHub Pages serve all files.
func write(folder string, sites []site) error {
	raw, err := json.MarshalIndent(sites, "", "  ")
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		list: string(raw) + "\n", "index.html": fmt.Sprintf(index, sites[0].Version, sites[0].Title), ".nojekyll": "",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
