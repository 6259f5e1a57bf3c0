// Command sbom writes the bill of materials of a Go program, in SPDX 2.3 as JSON,
// to standard output: what the program itself says that it was built from. The same
// program and time give the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM VERSION DATE, such as sbom bin/load-watcher v0.1.0 2026-11-21")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(2)
	}
}

// run writes the bill of a program, of a version, made on a day.
func run(program, version, day string, out io.Writer) error {
	created, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return fmt.Errorf("DATE: invalid value %q: must be a day such as 2026-11-21", day)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("PROGRAM: %w", err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if version == "" {
		return errors.New("VERSION: required: must be the version of the program, such as v0.1.0")
	}
	return spdxjson.Write(bill(filepath.Base(program), version, created, info, sha256.Sum256(content)), out, spdxjson.Indent("  "))
}

// bill returns the document of a program with this checksum.
func bill(name, version string, created time.Time, info *debug.BuildInfo, sum [sha256.Size]byte) *v2_3.Document {
	program := &v2_3.Package{
		PackageName: name, PackageVersion: version, PackageFileName: name,
		PackageSPDXIdentifier: "Program", PackageDownloadLocation: "NOASSERTION", PrimaryPackagePurpose: "APPLICATION",
		PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: fmt.Sprintf("%x", sum)}},
		PackageExternalReferences: purl(info.Main.Path + "@" + version),
		PackageLicenseDeclared:    "Apache-2.0",
	}
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		// Of the content, so that it names this very program.
		DocumentNamespace: fmt.Sprintf("https://%s/sbom/%s/%x", info.Main.Path, name, sum),
		CreationInfo: &v2_3.CreationInfo{
			Created:  created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "plimsoll-sbom"}},
		},
		Packages:      []*v2_3.Package{program},
		Relationships: []*v2_3.Relationship{relation("DOCUMENT", "DESCRIBES", "Program")},
	}
	add := func(id common.ElementID, name, version string) {
		document.Packages = append(document.Packages, &v2_3.Package{
			PackageName: name, PackageVersion: version, PackageSPDXIdentifier: id, PackageDownloadLocation: "NOASSERTION",
			PackageExternalReferences: purl(name + "@" + version),
		})
		document.Relationships = append(document.Relationships, relation("Program", "DEPENDS_ON", id))
	}
	add("Go", "stdlib", info.GoVersion)
	for i, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		add(common.ElementID(fmt.Sprintf("Module-%d", i+1)), module.Path, module.Version)
	}
	return document
}

func purl(rest string) []*v2_3.PackageExternalReference {
	return []*v2_3.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + rest}}
}

func relation(from common.ElementID, is string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{
		RefA:         common.MakeDocElementID("", string(from)),
		RefB:         common.MakeDocElementID("", string(to)),
		Relationship: is,
	}
}
