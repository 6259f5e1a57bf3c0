// Command images builds the images of programs with ko, without Docker. It pushes them to a registry, or writes each to
// an OCI archive: the tar archive of an OCI layout, as containerd, kind, Podman and skopeo read it. The base image is made
// here, so that no other registry is read. The same sources, version and date give the same bytes.
//
//	images [flags] PROGRAM...
//
// PROGRAM is the name of a folder in cmd, whose folder kodata has the license texts of the program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/ko/pkg/build"
	"github.com/google/ko/pkg/publish"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// source is the label that connects an image with the repository of its sources.
const source = "https://github.com/plimsoll-k8s/plimsoll"

// images describes the images of a version.
type images struct {
	// sources is the folder of the project.
	sources           string
	version, registry string
	ldflags           string
	platforms         []string
	day               v1.Time
	// folder is the folder of the archives. If it is empty, the images are pushed to the registry.
	folder   string
	programs []string
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	i, err := parse(arguments)
	if err != nil {
		return err
	}
	log.SetOutput(io.Discard) // of ko
	builder, err := i.builder(ctx)
	if err != nil {
		return err
	}
	for _, program := range i.programs {
		reference, err := builder.QualifyImport("./cmd/" + program)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		image, err := builder.Build(ctx, reference)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		written, err := i.publish(ctx, program, image)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		fmt.Fprintln(out, written)
	}
	return nil
}

func parse(arguments []string) (*images, error) {
	i := &images{}
	var platforms, date string
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&i.sources, "sources", "../..", "folder of the project")
	flags.StringVar(&i.version, "version", "", "tag of the images")
	flags.StringVar(&date, "date", "", "day of the commit, such as 2026-11-21")
	flags.StringVar(&i.ldflags, "ldflags", "", "flags of the linker")
	flags.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "platforms, separated by commas")
	flags.StringVar(&i.registry, "registry", "", "registry of the images, such as registry.example.com/plimsoll")
	flags.StringVar(&i.folder, "folder", "", "folder for the archives; if empty, the images are pushed to the registry")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	i.platforms, i.programs = strings.Split(platforms, ","), flags.Args()
	for _, p := range i.platforms {
		if system, architecture, _ := strings.Cut(p, "/"); system != "linux" || architecture == "" {
			return nil, fmt.Errorf("-platforms: invalid value %q: must be a list such as linux/amd64,linux/arm64", platforms)
		}
	}
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return nil, fmt.Errorf("-date: invalid value %q: must be a day such as 2026-11-21", date)
	}
	i.day = v1.Time{Time: day}
	if _, err := name.NewTag(i.reference("program"), name.StrictValidation); err != nil {
		return nil, fmt.Errorf("-registry and -version: %w", err)
	}
	if len(i.programs) == 0 {
		return nil, errors.New("no programs: must be names of folders in cmd, such as load-watcher")
	}
	return i, nil
}

// reference returns the name of an image in the registry.
func (i *images) reference(program string) string {
	return path.Join(i.registry, program) + ":" + i.version
}

// builder returns ko with the flags of make build.
func (i *images) builder(ctx context.Context) (build.Interface, error) {
	base, err := baseImages(i.platforms, i.day)
	if err != nil {
		return nil, err
	}
	scratch, err := name.ParseReference("scratch")
	if err != nil {
		return nil, err
	}
	return build.NewGo(ctx, i.sources,
		build.WithBaseImages(func(context.Context, string) (name.Reference, build.Result, error) { return scratch, base, nil }),
		build.WithPlatforms(i.platforms...),
		build.WithDefaultEnv([]string{"CGO_ENABLED=0"}),
		build.WithDefaultFlags([]string{"-trimpath", "-buildvcs=false"}),
		build.WithDefaultLdflags([]string{i.ldflags}),
		build.WithCreationTime(i.day), build.WithKoDataCreationTime(i.day),
		build.WithSPDX(i.version),
		build.WithLabel("org.opencontainers.image.source", source),
		build.WithLabel("org.opencontainers.image.version", i.version),
		build.WithLabel("org.opencontainers.image.licenses", "Apache-2.0"),
	)
}

// publish writes or pushes an image, and returns where it is.
func (i *images) publish(ctx context.Context, program string, image build.Result) (string, error) {
	if i.folder != "" {
		file := filepath.Join(i.folder, program+"_"+i.version+"_image.tar")
		return file, i.archive(file, program, image)
	}
	publisher, err := publish.NewDefault(i.registry,
		publish.WithAuthFromKeychain(authn.DefaultKeychain),
		publish.WithTags([]string{i.version}),
		publish.WithJobs(1),
		publish.WithNamer(func(registry, _ string) string { return path.Join(registry, program) }))
	if err != nil {
		return "", err
	}
	pushed, err := publisher.Publish(ctx, image, program)
	if err != nil {
		return "", err
	}
	return pushed.String(), publisher.Close()
}
