package alibaba2018

// The columns of the files in the order of the published schema (cluster-trace-v2018, schema.txt). The
// files have no headers.

const (
	machineID = iota
	machineTime
	machineDomain1
	machineDomain2
	machineCPU
	machineMemory
	machineStatus
)

var machineColumns = []string{"machine_id", "time_stamp", "failure_domain_1", "failure_domain_2", "cpu_num", "mem_size", "status"}

const (
	containerID = iota
	containerMachine
	containerTime
	containerApp
	containerStatus
	containerCPURequest
	containerCPULimit
	containerMemory
)

var containerColumns = []string{"container_id", "machine_id", "time_stamp", "app_du", "status", "cpu_request", "cpu_limit", "mem_size"}

const (
	taskName = iota
	taskInstances
	taskJob
	taskType
	taskStatus
	taskStart
	taskEnd
	taskCPU
	taskMemory
)

var taskColumns = []string{"task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time", "plan_cpu", "plan_mem"}

const (
	instanceName = iota
	instanceTask
	instanceJob
	instanceType
	instanceStatus
	instanceStart
	instanceEnd
	instanceMachine
	instanceSeq
	instanceTotalSeq
	instanceCPUAvg
	instanceCPUMax
	instanceMemAvg
	instanceMemMax
)

var instanceColumns = []string{
	"instance_name", "task_name", "job_name", "task_type", "status", "start_time", "end_time", "machine_id", "seq_no",
	"total_seq_no", "cpu_avg", "cpu_max", "mem_avg", "mem_max",
}
