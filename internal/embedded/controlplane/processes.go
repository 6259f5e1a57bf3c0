package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/pkg/fieldpath"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
)

// processes runs pods as processes of this machine: those with one container whose image is the name of a program. Arguments and
// environment variables that contain the mount path of a volume get the directory of the volume. Volumes are emptyDir, configMap and
// projected ConfigMaps. Pods with a service account have a kubeconfig with its token, in $KUBECONFIG.
type processes struct {
	client   kubernetes.Interface
	dir      string
	address  string
	programs map[string]string

	mu      sync.Mutex
	running map[types.UID]*podProcess
}

// podProcess is the process of a pod.
type podProcess struct {
	process *subprocess.Process
	stderr  bytes.Buffer
}

// maxMessage is the length of the end of the standard error that is the termination message of a failed pod.
const maxMessage = 2048

// runs reports whether a pod is run as a process.
func (p *processes) runs(pod *v1.Pod) bool {
	return len(pod.Spec.Containers) == 1 && p.programs[pod.Spec.Containers[0].Image] != ""
}

// start starts the process of a pod unless it has been started. It calls ended when the process ends.
func (p *processes) start(ctx context.Context, pod *v1.Pod, ended func()) error {
	p.mu.Lock()
	_, started := p.running[pod.UID]
	p.mu.Unlock()
	if started {
		return nil
	}
	command, err := p.command(ctx, pod)
	if err != nil {
		return err
	}
	launched := &podProcess{}
	command.Stderr = &launched.stderr
	if launched.process, err = subprocess.Start(command); err != nil {
		return err
	}
	p.mu.Lock()
	p.running[pod.UID] = launched
	p.mu.Unlock()
	go func() {
		<-launched.process.Exited()
		ended()
	}()
	return nil
}

// command returns the command of the container of a pod, with its volumes.
func (p *processes) command(ctx context.Context, pod *v1.Pod) (*exec.Cmd, error) {
	container := &pod.Spec.Containers[0]
	root := p.rootOf(pod.UID)
	mounts, err := p.mount(ctx, pod, root)
	if err != nil {
		return nil, err
	}
	local := strings.NewReplacer(mounts...)
	var args []string
	for _, argument := range append(append([]string{}, container.Command...), container.Args...) {
		args = append(args, local.Replace(argument))
	}
	command := exec.Command(p.programs[container.Image], args...)
	command.Dir, command.Env = root, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root}
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			if value, err = fieldpath.ExtractFieldPathAsString(pod, from.FieldRef.FieldPath); err != nil {
				return nil, err
			}
		}
		command.Env = append(command.Env, variable.Name+"="+local.Replace(value))
	}
	if pod.Spec.ServiceAccountName != "" {
		kubeconfig := filepath.Join(root, "kubeconfig")
		if err := p.writeKubeconfig(ctx, pod, kubeconfig); err != nil {
			return nil, err
		}
		command.Env = append(command.Env, "KUBECONFIG="+kubeconfig)
	}
	return command, nil
}

// rootOf returns the directory of a pod.
func (p *processes) rootOf(uid types.UID) string { return filepath.Join(p.dir, "pods", string(uid)) }

// mount writes the volumes of a pod, and returns the mount paths, each followed by its directory.
func (p *processes) mount(ctx context.Context, pod *v1.Pod, root string) ([]string, error) {
	dirs := map[string]string{}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		dir := filepath.Join(root, "volumes", volume.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		dirs[volume.Name] = dir
		switch {
		case volume.ConfigMap != nil:
			if err := p.writeConfigMap(ctx, pod.Namespace, volume.ConfigMap.Name, volume.ConfigMap.Items, dir); err != nil {
				return nil, err
			}
		case volume.Projected != nil:
			for _, source := range volume.Projected.Sources {
				if source.ConfigMap == nil {
					continue
				}
				if err := p.writeConfigMap(ctx, pod.Namespace, source.ConfigMap.Name, source.ConfigMap.Items, dir); err != nil {
					return nil, err
				}
			}
		case volume.EmptyDir == nil:
			return nil, fmt.Errorf("volume %s: must be emptyDir, configMap or projected", volume.Name)
		}
	}
	var mounts []string
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		mounts = append(mounts, mount.MountPath, dirs[mount.Name])
	}
	return mounts, nil
}

// writeConfigMap writes the items of a ConfigMap, all keys if there are no items, to files of a directory.
func (p *processes) writeConfigMap(ctx context.Context, namespace, name string, items []v1.KeyToPath, dir string) error {
	found, err := p.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	content := map[string][]byte{}
	for key, text := range found.Data {
		content[key] = []byte(text)
	}
	maps.Copy(content, found.BinaryData)
	if len(items) == 0 {
		for key := range content {
			items = append(items, v1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(item.Path)), content[item.Key], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig with a token of the service account of a pod.
func (p *processes) writeKubeconfig(ctx context.Context, pod *v1.Pod, file string) error {
	token, err := p.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	const name = "pod"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.address, CertificateAuthority: filepath.Join(p.dir, caFile)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: pod.Namespace}},
		CurrentContext: name,
	}, file)
}

// exit returns whether the process of a pod has ended, its exit code and, if it is not 0, the end of its standard error. A pod without
// a process has failed: this control plane has not started it.
func (p *processes) exit(uid types.UID) (ended bool, code int32, message string) {
	p.mu.Lock()
	process := p.running[uid]
	p.mu.Unlock()
	if process == nil {
		return true, 1, "the process does not exist"
	}
	select {
	case <-process.process.Exited():
	default:
		return false, 0, ""
	}
	if code = int32(process.process.ExitCode()); code != 0 {
		message = process.stderr.String()
		message = message[max(len(message)-maxMessage, 0):]
	}
	return true, code, message
}

// stop stops the process of a pod and removes its files.
func (p *processes) stop(uid types.UID) {
	p.mu.Lock()
	process := p.running[uid]
	delete(p.running, uid)
	p.mu.Unlock()
	if process != nil {
		process.process.Stop()
		_ = os.RemoveAll(p.rootOf(uid)) // the directory of the control plane is removed in any case
	}
}
