package kube

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// SavedAnnotation is the annotation of a ConfigMap with the time at which its data was saved.
	SavedAnnotation = "plimsoll.dev/history-saved"
	// MaxSaved is the maximum size of saved data in bytes. A ConfigMap may have 1 MiB.
	MaxSaved = 900 << 10
	// maxText is the maximum size of decompressed data in bytes.
	maxText = 32 << 20
)

// Saved is a ConfigMap in which a process keeps data over restarts. The process does not create it.
type Saved struct {
	ConfigMaps corev1client.ConfigMapInterface
	Name       string
}

// Get returns the ConfigMap.
func (s Saved) Get(ctx context.Context) (*v1.ConfigMap, error) {
	object, err := s.ConfigMaps.Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: create an empty ConfigMap of this name", err)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: RBAC must permit get and update of this ConfigMap", err)
	}
	return object, err
}

// Update sets keys of the data of a ConfigMap that Get has returned, deletes keys without data, and sets the time at which it was
// saved. It reports whether the ConfigMap was updated: if another process updates it at the same time, it is not.
func (s Saved) Update(ctx context.Context, object *v1.ConfigMap, data map[string][]byte, now time.Time, manager string) (bool, error) {
	object = object.DeepCopy()
	if object.BinaryData == nil {
		object.BinaryData = map[string][]byte{}
	}
	for key, value := range data {
		if object.BinaryData[key] = value; len(value) == 0 {
			delete(object.BinaryData, key)
		}
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, SavedAnnotation, now.UTC().Format(time.RFC3339))
	_, err := s.ConfigMaps.Update(ctx, object, metav1.UpdateOptions{FieldManager: manager})
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// SavedAt returns the time at which the data of a ConfigMap was saved, and whether the ConfigMap has such a time.
func SavedAt(object *v1.ConfigMap) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, object.Annotations[SavedAnnotation])
	return at, err == nil
}

// Compress returns a value as gzipped JSON.
func Compress(value any) ([]byte, error) {
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	if err := json.NewEncoder(zip).Encode(value); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// Decompress reads a value from gzipped JSON of at most 32 MiB.
func Decompress(data []byte, value any) error {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxText+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxText:
		return fmt.Errorf("has more than %d MiB", maxText>>20)
	}
	return json.Unmarshal(text, value)
}
