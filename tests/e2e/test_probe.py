"""moe-probe on made machines (tests/fixtures/machine.py), on recorded ones (../shared, when it is
there), and on this machine."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "fixtures")]
import machine  # noqa: E402
from lib import ROOT, Skipped, Suite, equal, need  # noqa: E402
from probe_rig import CORES, run, probe, made, gpu, has  # noqa: E402

suite = Suite()
on = made(suite)

SHARED = os.path.join(ROOT, "..", "shared", "data", "hardware")

# ---- healthy machines
COMPLETE = set(
    """device_id driver pcie_width pcie_width_max pcie_speed_gts pcie_speed_max_gts\
 aer_correctable aer_nonfatal aer_fatal temp_junction_c temp_mem_c temp_junction_crit_c power_w\
 power_cap_w
    power_cap_default_w gfx_clock_mhz busy_pct mem_busy_pct vram_used_bytes vram_total_bytes\
 ras_ue ras_ce ras_de bad_pages_retired bad_pages_pending bad_pages_failed poison_created\
 poison_consumed
    fatal_events pcie_replay pcie_l0_recovery pcie_nak xgmi_error xgmi_links xgmi_hive\
 metrics_counter prochot_residency ppt_residency socket_thm_residency vr_thm_residency\
 hbm_thm_residency
    compute_partition memory_partition vbios gpu_metrics_version xgmi_bytes read_ms files""".split()
)

NIC_COMPLETE = set(
    """state phys_state link_layer rate_gbps rate_expected_gbps carrier_down link_downed\
 symbol_error link_error_recovery rcv_errors xmit_discards out_of_sequence packet_seq_err
    local_ack_timeout rnr_nak_retry mtu operstate fw device_id rdma_bytes""".split()
)

ZERO = (
    "aer_correctable aer_nonfatal aer_fatal ras_ue ras_ce ras_de bad_pages_retired poison_created "
    "pcie_replay pcie_l0_recovery pcie_nak xgmi_error".split()
)


def healthy(root, gpus, nics, device, metrics):
    for bdf in gpus:
        got, problem, whole = probe(root, "gpu", bdf)
        equal(problem, None, "problem of %s" % bdf)
        equal(sorted(COMPLETE - set(got)), [], "keys that %s lacks" % bdf)
        equal([k for k in ZERO if got[k]], [], "counters of %s that are not 0" % bdf)
        has(
            got,
            device_id=device,
            gpu_metrics_version=metrics,
            xgmi_links=len(gpus) - 1,
            pcie_width=16,
            pcie_speed_gts=32,
        )
        need(got["files"] <= 100, "%d files were opened for %s" % (got["files"], bdf))
        need(
            20 < got["temp_junction_c"] < 60 and 90 < got["power_w"] < 200,
            "sensors of %s: %s" % (bdf, got),
        )
        equal(len(whole["identity"]), 16, "identity of %s" % bdf)
    for nic in nics:
        got, problem, whole = probe(root, "nic", nic)
        equal(problem, None, "problem of %s" % nic)
        equal(sorted(NIC_COMPLETE - set(got)), [], "keys that %s lacks" % nic)
        has(
            got,
            state="ACTIVE",
            phys_state="LinkUp",
            rate_gbps=400,
            rate_expected_gbps=400,
            link_downed=0,
        )
        need(whole["identity"], "%s has no identity" % nic)
    got, problem, _ = probe(root, "host")
    equal(problem, None, "problem of the host")
    has(
        got,
        gpus_pci=len(gpus),
        gpus_kfd=len(gpus),
        gpus_renderable=len(gpus),
        governor="performance",
        numa_balancing=0,
        iommu="pt",
        thp="always",
        memlock_bytes=2.0**64,
    )
    need(
        got["numa_free_min_bytes"] > 2**35
        and got["shm_bytes"] > 2**33
        and got["driver_canary_ms"] > 0,
        "host: %s" % got,
    )


@on("mi300x")
def mi300x(m):
    healthy(m.root, [g.bdf for g in m.gpus], ["mlx5_%d" % i for i in range(8)], "1002:74a1", "1.6")


@on("mi355x")
def mi355x(m):
    healthy(m.root, [g.bdf for g in m.gpus], ["ionic_%d" % i for i in range(8)], "1002:75a3", "1.8")
    has(gpu(m, 0)[0], xgmi_links_up=7)
    has(probe(m.root, "nic", "ionic_0")[0], link_layer="Ethernet", gid_rocev2=1)


@on("thor2")
def thor2(m):
    healthy(m.root, [g.bdf for g in m.gpus], [], "1002:74a5", "1.7")
    has(probe(m.root, "nic", "bnxt_re0")[0], state="ACTIVE", rate_gbps=400, rate_expected_gbps=400)


@on("mi355x")
def what_cards_and_links_moved(m):
    """By the kernel's counters of words, by drivers' own; one that is missing or saturated says
    nothing."""
    m.metrics(1, xgmi_read=[2] * 8, xgmi_write=[3] * 7 + [2**64 - 1])
    equal(gpu(m, 1)[0]["xgmi_bytes"], (16 + 21) * 1024)
    port = "{ib0}/ports/1/"
    m.write(port + "counters/port_xmit_data", 1000)
    m.write(port + "counters/port_rcv_data", 24)
    m.write(port + "hw_counters/tx_rdma_ucast_bytes", 7)
    for args in (["ionic_0"], ["--sensors", "ionic_0"]):
        equal(probe(m.root, "nic", *args)[0]["rdma_bytes"], 4096)
    equal(
        sorted(probe(m.root, "nic", "--sensors", "ionic_0")[0]), ["files", "rdma_bytes", "read_ms"]
    )
    m.write(port + "counters/port_rcv_data", 4294967295)
    equal(probe(m.root, "nic", "ionic_0")[0]["rdma_bytes"], 7, "the driver's own")
    m.remove(port + "hw_counters/tx_rdma_ucast_bytes")
    m.remove(port + "counters/port_xmit_data")
    got, problem, _ = probe(m.root, "nic", "ionic_0")
    equal((got.get("rdma_bytes"), problem), (None, None), "nothing to read")


@on("mi300x-cpx")
def partitions_are_one_gpu(m):
    has(gpu(m, 3)[0], xgmi_links=7, compute_partition="CPX")
    has(probe(m.root, "host")[0], gpus_pci=8, gpus_kfd=8, gpus_renderable=8)
    m.remove("dev/dri/renderD131")
    has(probe(m.root, "host")[0], gpus_kfd=8, gpus_renderable=7)


@on("h200-vm")
def nvidia_in_a_vm(m):
    got, problem, whole = gpu(m, 0)
    equal(problem, None, "problem")
    has(got, device_id="10de:2335", pcie_width=16)
    need("aer_fatal" not in got and "ras_ue" not in got, "readings that it cannot have: %s" % got)
    need(whole["identity"].startswith("GPU-"), "identity: %s" % whole["identity"])
    has(probe(m.root, "host")[0], gpus_pci=1)


@on("cpu")
def no_gpu(m):
    got, problem, _ = probe(m.root, "host")
    equal(problem, None, "problem")
    has(got, gpus_pci=0, cpus_online=2 * CORES * 2)
    need("driver_canary_ms" not in got, "no driver can have been asked")


@suite.test
def every_key_is_documented():
    with open(os.path.join(ROOT, "docs", "health.md")) as f:
        known = set(re.findall(r"`([a-z0-9_]+)(?:\.[A-Za-z]+)?`", f.read()))
    missing = set()
    for kind in ("mi300x", "mi355x", "h200-vm"):
        with tempfile.TemporaryDirectory() as top:
            m = machine.make(
                kind,
                top,
                cores=CORES,
                faults=[] if kind == "h200-vm" else ["klog", "foreign", "ras_ue"],
            )
            areas = (
                [["gpu", g.bdf] for g in m.gpus]
                + [
                    ["nic", n]
                    for n in (os.listdir(top + "/sys/class/infiniband") if m.nics else [])
                ]
                + [["host", "--disk", "/dev"], ["stack"], ["klog"]]
            )
            for args in areas:
                got = probe(top, *args)[0]
                rules = {
                    k for k in got if args == ["klog"] and "-" in k or k in ("oom", "segfault")
                }
                missing |= {k.split(".")[0] for k in set(got) - rules} - known
    equal(sorted(missing), [], "keys that docs/health.md lacks")


# ---- faults
@on("mi300x", "ras_ue=4")
def uncorrectable_errors(m):
    has(
        gpu(m, 4)[0],
        ras_ue=2,
        ras_ce=119,
        poison_created=2,
        poison_consumed=1,
        fatal_events=0,
        bad_pages_retired=1,
        bad_pages_pending=1,
        **{"ras_ue.umc": 2, "ras_ce.umc": 119},
    )
    has(gpu(m, 3)[0], ras_ue=0, ras_ce=0, poison_created=0)


@on("mi300x", "pcie=5", "thermal=7", "xgmi_error=6", "vram_held=2", "power_cap=3")
def gpu_faults(m):
    has(
        gpu(m, 5)[0],
        pcie_width=8,
        pcie_width_max=16,
        pcie_speed_gts=16,
        pcie_speed_max_gts=32,
        pcie_replay=812,
        pcie_l0_recovery=211,
        pcie_nak=430,
        aer_correctable=1873,
        aer_nonfatal=3,
        aer_fatal=0,
    )
    has(gpu(m, 7)[0], temp_junction_c=103, socket_thm_residency=5000, temp_junction_crit_c=105)
    has(gpu(m, 6)[0], xgmi_error=7)
    has(gpu(m, 2)[0], vram_used_bytes=20924743680)
    has(gpu(m, 3)[0], power_cap_w=500, power_cap_default_w=750)


@on("mi355x", "xgmi_link=6")
def xgmi_link_down(m):
    got = gpu(m, 6)[0]
    has(got, xgmi_links=7, xgmi_links_up=6)


@on("mi300x", "nic_down=1", "nic_flap=3", "nic_slow=2")
def nic_faults(m):
    has(
        probe(m.root, "nic", "mlx5_1")[0],
        state="DOWN",
        phys_state="Polling",
        rate_gbps=10,
        rate_expected_gbps=400,
        operstate="down",
    )
    has(probe(m.root, "nic", "mlx5_3")[0], link_downed=4, carrier_down=5, out_of_sequence=52113)
    has(probe(m.root, "nic", "mlx5_2")[0], rate_gbps=100, rate_expected_gbps=400)


@on("mi355x", "nic_no_gid=2")
def no_address(m):
    has(probe(m.root, "nic", "ionic_2")[0], gid_rocev2=0)


@on("mi300x", "governor=3", "numa_balancing", "memory_low=1", "no_render=2", "no_driver=5")
def host_faults(m):
    has(
        probe(m.root, "host")[0],
        governor="performance, 1 powersave",
        numa_balancing=1,
        numa_free_min_bytes=716800 * 1024,
        gpus_pci=8,
        gpus_kfd=7,
        gpus_renderable=6,
        **{"numa_free_bytes.1": 716800 * 1024},
    )


@on("mi300x", "foreign=2")
def foreign_processes(m):
    has(gpu(m, 2)[0], foreign_pids=1, foreign_vram_bytes=8 * 2**30, foreign="4242 python3")
    has(gpu(m, 3)[0], foreign_pids=0, foreign_vram_bytes=0)
    m.write("proc/4242/environ", b"PATH=/bin\0MOE_STEP=j1.a1.n0.00\0HOME=/\0")
    has(gpu(m, 2)[0], foreign_pids=0)
    m.write("proc/4242/environ", b"PATH=/bin\0NOT_MOE_STEP=1\0MOE_STEPS=3")
    has(gpu(m, 2)[0], foreign_pids=1)
    m.remove("proc/4242")
    has(gpu(m, 2)[0], foreign_pids=1, foreign="4242 (ended)")


@on("mi300x", "foreign=2")
def what_ended_processes_left(m):
    """Gone, or only an exit status of all its threads; memory or a queue, on this GPU."""
    status = "Name:\tpython3\nState:\t%s\nThreads:\t%d\n"
    has(gpu(m, 2)[0], ended_pids=0)
    m.write("proc/4242/status", status % ("Z (zombie)", 2))
    has(gpu(m, 2)[0], ended_pids=0)
    m.write("proc/4242/status", status % ("Z (zombie)", 1))
    has(gpu(m, 2)[0], **{"ended_pids": 1, "ended_pids.pid": "4242"})
    m.remove("proc/4242")
    has(gpu(m, 2)[0], **{"ended_pids": 1, "ended_pids.vram_bytes": 8 * 2**30})
    has(gpu(m, 3)[0], ended_pids=0)
    queue = {"gpuid": m.read("{kfd3}/gpu_id").strip()}
    m.files("sys/class/kfd/kfd/proc/4242/queues/0", **queue)
    has(gpu(m, 3)[0], **{"ended_pids": 1, "ended_pids.vram_bytes": 0})
    has(gpu(m, 4)[0], ended_pids=0)


# ---- the kernel's log
@on("mi300x", "klog=4")
def kernel_log_of_a_made_machine(m):
    got, problem, _ = probe(m.root, "klog")
    equal(problem, None, "problem")
    has(
        got,
        **{
            "ras-fatal": 1,
            "gpu-page-fault": 1,
            "devices.ras-fatal": m.gpus[4].bdf,
            "pids.gpu-page-fault": "4242",
            "events.ras-fatal": "1",
            "gpu-hang": 0,
        },
    )
    last = got["last_seq"]
    again = probe(m.root, "klog", "--since", "%d" % last)[0]
    has(again, **{"ras-fatal": 0, "gpu-page-fault": 0, "records": 0, "last_seq": last})
    # numbers began anew: another boot
    has(probe(m.root, "klog", "--since", "%d" % (last + 1000))[0], **{"ras-fatal": 1})
    m.remove("dev/kmsg")
    got, problem, _ = probe(m.root, "klog")
    need(
        problem is None and "ras-fatal" not in got,
        "a recorded machine without a log: nothing is known of it, and that is no finding: %s %s"
        % (problem, got),
    )


# lines of real machines and of the drivers' sources -> the rules that match, and nothing else
LINES = [
    (
        "amdgpu 0000:68:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        "ras-fatal",
    ),
    (
        "amdgpu 0000:9e:00.0: {1}[Hardware Error]: Accelerator Check Architecture events logged",
        "ras-aca",
    ),
    ("amdgpu 0000:9e:00.0: {1}[Hardware Error]: aca entry[00].STATUS=0x98000800003e0000", ""),
    (
        "amdgpu 0000:c1:00.0: amdgpu: socket: 4, die: 0 1 correctable hardware errors detected in "
        "total in gfx block, no user action is needed.",
        "ras-corrected",
    ),
    (
        "amdgpu 0000:c1:00.0: amdgpu: 0 correctable hardware errors detected in total in gfx block",
        "",
    ),
    ("amdgpu 0000:c1:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block", ""),
    ("amdgpu 0000:c1:00.0: amdgpu: {3}Poison is created", "ras-poison"),
    (
        "amdgpu 0000:c1:00.0: amdgpu: Saved bad pages 130 reaches threshold value 128",
        "ras-threshold",
    ),
    ("amdgpu 0000:af:00.0: amdgpu: GPU reset begin! Source: 3", "gpu-reset"),
    ("amdgpu 0000:af:00.0: amdgpu: GPU reset(1) succeeded!", "gpu-reset"),
    ("amdgpu 0000:af:00.0: amdgpu: GPU reset(1) failed", "gpu-reset-failed"),
    ("amdgpu: qcm fence wait loop timeout expired", "gpu-hang"),
    (
        "amdgpu: The cp might be in an unrecoverable state due to an unsuccessful queues "
        "preemption",
        "gpu-hang",
    ),
    (
        "amdgpu 0000:af:00.0: amdgpu: SMU: I'm not done with your previous command: "
        "SMN_C2PMSG_66:0x00000006",
        "gpu-hang",
    ),
    (
        "amdgpu 0000:c6:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:3 "
        "pasid:32769)",
        "gpu-page-fault",
    ),
    (
        "amdgpu 0000:3d:00.0: amdgpu: [mmhub0] retry page fault (src_id:0 ring:0 vmid:3 "
        "pasid:32790)",
        "gpu-page-fault",
    ),
    (
        "amdgpu: Runlist is getting oversubscribed. Expect reduced ROCm performance.",
        "gpu-oversubscribed",
    ),
    (
        "[drm:amdgpu_device_ip_late_init [amdgpu]] *ERROR* hw_init of IP block <gfx_v9_4_3> "
        "failed -110",
        "gpu-init",
    ),
    ("NVRM: Xid (PCI:0000:06:00): 79, pid=1234, GPU has fallen off the bus.", "gpu-lost xid-fatal"),
    ("NVRM: Xid (PCI:0000:06:00): 31, pid=1234, name=python, MMU Fault", "xid-program"),
    (
        "pcieport 0000:a8:00.0: AER: Uncorrectable (Fatal) error message received from "
        "0000:af:00.0",
        "pcie-fatal",
    ),
    ("pcieport 0000:a8:00.0: DPC: containment event, status:0x1f01 source:0x0000", "pcie-fatal"),
    (
        "pcieport 0000:a8:00.0: DPC: error containment capabilities: Int Msg #0, RPExt+ "
        "PoisonedTLP+ SwTrigger+ RP PIO Log 6, DL_ActiveErr+",
        "",
    ),
    ("pcieport 0000:a8:00.0: AER: enabled with IRQ 27", ""),
    ("pcieport 0000:00:01.1: AER: aer_layer=Data Link Layer, aer_agent=Receiver ID", ""),
    (
        "pcieport 0000:00:01.1: AER: Corrected error message received from 0000:05:00.0",
        "pcie-corrected",
    ),
    ("{359}[Hardware Error]: event severity: corrected", "machine-check-corrected"),
    ("{359}[Hardware Error]: event severity: fatal", "machine-check"),
    ("[Hardware Error]: Uncorrected, software restartable error.", "machine-check"),
    ("mce: [Hardware Error]: Machine check events logged", ""),
    (
        "EDAC MC0: 1 CE on mc#0csrow#1channel#3 (csrow:1 channel:3 page:0x8d2b3 offset:0x0 "
        "grain:64 syndrome:0x0)",
        "machine-check-corrected",
    ),
    ("nvme nvme0: I/O 123 QID 4 timeout, aborting", "storage-error"),
    (
        "nvme nvme0: I/O tag 5 (1005) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting req_op:READ(0) "
        "size:4096",
        "storage-error",
    ),
    (
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
        "storage-fatal",
    ),
    (
        "I/O error, dev nvme0n1, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
        "storage-error",
    ),
    ("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", "storage-fatal"),
    ("EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode", ""),
    (
        "mlx5_core 0000:07:00.0: Port module event[error]: module 0, Cable error, Bus stuck(I2C "
        "or data shorted)",
        "nic-error",
    ),
    ("mlx5_core 0000:07:00.0 ib0: Link down", "nic-down"),
    ("mlx5_core 0000:07:00.0 ib0: Link up", ""),
    ("bnxt_en 0000:26:00.0 benic1p1: NIC Link is Down", "nic-down"),
    (
        "python3[6071]: segfault at 0 ip 00007f1 sp 00007ffd error 4 in "
        "libamdhip64.so.7[7f0000+1000]",
        "segfault",
    ),
    ("Out of memory: Killed process 6071 (python3) total-vm:1234kB, anon-rss:1234kB", "oom"),
    ("INFO: task kworker/u768:3:99 blocked for more than 120 seconds.", "kernel-stall"),
    ("watchdog: BUG: soft lockup - CPU#5 stuck for 26s! [python3:6071]", "kernel-stall"),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "kernel-stall"),
    ("amdgpu 0000:03:00.0: amdgpu: Fetched VBIOS from VFCT", ""),
    ("[drm] amdgpu kernel modesetting enabled", ""),
    ("amdgpu 0000:05:00.0: amdgpu: RAS: optional ras ta ucode is not available", ""),
    ("RAS: Correctable Errors collector initialized.", ""),
    ("MCE: In-kernel MCE decoding enabled.", ""),
]


@suite.test
def each_line_matches_its_rules():
    wrong = []
    with tempfile.TemporaryDirectory() as top:
        os.mkdir(top + "/dev")
        for line, want in LINES:
            with open(top + "/dev/kmsg", "w") as f:
                f.write("3,7,1000000,-;%s\n SUBSYSTEM=pci\n" % line)
            got = probe(top, "klog")[0]
            rules = {
                k
                for k, v in got.items()
                if v == 1 and "." not in k and k not in ("records", "files")
            }
            if rules != set(want.split()):
                wrong.append("%s: %s" % (line, sorted(rules)))
            with open(top + "/dev/kmsg", "w") as f:
                f.write("11,7,1000000,-;%s\n" % line)
            if any(
                v == 1
                for k, v in probe(top, "klog")[0].items()
                if "." not in k and k not in ("records", "files")
            ):
                wrong.append("believed from a program: %s" % line)
    equal(wrong, [], "lines with other rules")


# ---- the fingerprint
@on("mi300x", "vbios=3")
def fingerprint(m):
    got, problem, _ = probe(m.root, "stack")
    equal(problem, None, "problem")
    has(
        got,
        kernel="6.8.0-60-generic",
        amdgpu="6.16.13",
        rocm="7.1.0-1",
        os="ubuntu 22.04",
        vbios="113-M3000100-102 (7), 113-M3000100-101 (1)",
        cmdline="ro pci=realloc=off iommu=pt",
        governor="performance",
        bios="F1.0",
        **{"nic_fw.mlx5": "28.39.3004", "gpu_fw.mec": "0x000000b1"},
    )
    need(all(isinstance(v, str) for v in got.values()), "items that are no texts: %s" % got)


@on("mi300x")
def the_command_line_keeps_its_secrets(m):
    m.write(
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=UUID=8d2f ro token=s3cret systemd.setenv=PASSWORD=s3cret "
        "ds=nocloud-net;s=http://me:s3cret@10.0.0.1/ iommu=pt amdgpu.ras_enable=1 "
        "rd.luks.name=s3cret",
    )
    has(probe(m.root, "host")[0], cmdline="ro iommu=pt amdgpu.ras_enable=1", iommu="pt")
    has(probe(m.root, "stack")[0], cmdline="ro iommu=pt amdgpu.ras_enable=1")
    for area in ("host", "stack"):
        need("s3cret" not in json.dumps(probe(m.root, area)[2]), "a secret is shown by " + area)


@on("mi300x")
def texts_are_bounded_and_clean(m):
    m.write("{gpu0}/vbios_version", "x" * 5000)
    m.write("{gpu0}/performance", "")
    m.write("{gpu0}/power_dpm_force_performance_level", b"auto\x1b[31m\n")
    got, problem, _ = gpu(m, 0)
    equal(got["vbios"], "x" * 256 + "...", "a long text")
    equal(problem, "power_dpm_force_performance_level: it is no text: 'auto?[31m?'", "problem")
    need("performance_level" not in got, "control bytes are a value")
    apply_long = "ras/" + "b" * 200 + "_err_count"
    m.write("{gpu0}/" + apply_long, "ue: 3\nce: 0")
    got = gpu(m, 0)[0]
    equal(
        (got["ras_ue"], [k for k in got if len(k) > 128]), (3, []), "names of readings are bounded"
    )


# ---- this machine, options, cost
@suite.test
def this_machine():
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with tempfile.TemporaryDirectory() as top:
        got, problem, _ = probe(
            None, "host", "--disk", top, "--disk", "/nowhere", "--limits-of", str(os.getpid())
        )
        equal(problem, "/nowhere: No such file or directory", "problem")
        has(got, nofile=soft, **{"disk_readonly." + top: 0})
        need(
            got["disk_free_bytes." + top] > 0
            and got["mem_total_bytes"] > 0
            and got["clock_synced"] in (0, 1),
            "host: %s" % got,
        )
    got, problem, _ = probe(None, "klog")
    need(problem or got["last_seq"] >= -1, "kernel log: %s %s" % (problem, got))
    has(probe(None, "stack")[0], kernel=os.uname().release)


@suite.test
def bad_usage():
    for args, words in (
        (["gpu"], "usage"),
        (["gpu", "card0"], "not a PCI address"),
        (["gpu", "0000:05:00.0/../x"], "not a PCI address"),
        (["nic", "../mlx5_0"], "not the name"),
        (["nic", ""], "not the name"),
        (["disk"], "usage"),
        ([], "usage"),
        (["host", "x"], "usage"),
        (["klog", "--since", "x"], "--since x"),
        (["host", "--limits-of", "-1"], "--limits-of -1"),
        (["--what"], "usage"),
    ):
        r = run(*args)
        equal(r.returncode, 2, "exit status of %s" % args)
        need(words in r.stderr and not r.stdout, "%s: %r" % (args, r.stderr))
    r = run("--root", "/nowhere", "host")
    equal(
        (r.returncode, r.stderr),
        (1, "moe-probe: /nowhere: No such file or directory\n"),
        "a root that is not there",
    )
    equal(run("--version").returncode, 0, "--version")
    equal(probe("/", "host")[1], None, "problem with the root /")


@on("mi300x")
def nvidia_form_of_an_address(m):
    has(probe(m.root, "gpu", "0000" + m.gpus[0].bdf.upper())[0], device_id="1002:74a1")


@suite.test
def rules_that_are_wrong():
    with tempfile.TemporaryDirectory() as top:
        os.makedirs(top + "/health")
        with open(top + "/health/klog.yaml", "w") as f:
            f.write(
                "drivers: [{name: d, begins: ['d: ']}]\nrules:\n"
                "  - {id: a, severity: warn, from: [d], match: ['(x'], what: w, next: n}\n"
            )
        r = run("klog", env={**os.environ, "MOE_DATA_DIR": top})
        equal(r.returncode, 1, "exit status")
        need("klog.yaml:3:" in r.stderr and "pattern '(x'" in r.stderr, r.stderr)


# ---- recorded and synthetic machines of the researchers
def unpacked(name):
    """Directory with the tree, or Skipped."""
    path = os.path.join(SHARED, "synthetic", "fakeroot-%s.tar.xz" % name)
    if not os.path.exists(path):
        raise Skipped("%s is not here" % path)
    top = tempfile.TemporaryDirectory()
    subprocess.run(["tar", "-xJf", path, "-C", top.name], check=True)
    root = top.name
    while not os.path.isdir(root + "/sys"):
        root = os.path.join(
            root, next(d for d in os.listdir(root) if os.path.isdir(os.path.join(root, d)))
        )
    return top, root


def gpus_of(root):
    dir = root + "/sys/bus/pci/devices"
    out = []
    for bdf in sorted(os.listdir(dir)):
        with open("%s/%s/class" % (dir, bdf)) as f:
            if f.read().startswith("0x1200"):
                out.append(bdf)
    return out


@suite.test
def shared_healthy_trees():
    for name, device, version, nic in (
        ("mi300x", "1002:74a1", "1.6", "mlx5_%d"),
        ("mi355x", "1002:75a3", "1.8", "ionic_%d"),
    ):
        top, root = unpacked(name)
        with top:
            equal(len(gpus_of(root)), 8, "GPUs of %s" % name)
            healthy(root, gpus_of(root), [nic % i for i in range(8)], device, version)


@suite.test
def shared_fault_tree():
    """FAULTS.md, row by row."""
    top, root = unpacked("mi300x-faults")
    with top:
        host = probe(root, "host")[0]
        has(
            host,
            governor="performance, 1 powersave",
            numa_balancing=1,
            **{"numa_free_bytes.1": 716800 * 1024},
        )
        has(
            probe(root, "nic", "mlx5_1")[0],
            state="DOWN",
            phys_state="Polling",
            rate_gbps=10,
            rate_expected_gbps=400,
        )
        has(probe(root, "nic", "mlx5_3")[0], link_downed=4, carrier_down=5, out_of_sequence=52113)
        need(probe(root, "gpu", "0000:1e:00.0")[0]["vram_used_bytes"] > 19 * 2**30, "VRAM held")
        has(
            probe(root, "gpu", "0000:9f:00.0")[0],
            ras_ue=2,
            ras_ce=119,
            bad_pages_retired=2,
            bad_pages_pending=0,
            poison_created=2,
            poison_consumed=1,
        )
        has(
            probe(root, "gpu", "0000:af:00.0")[0],
            pcie_width=8,
            pcie_speed_gts=16,
            pcie_replay=812,
            pcie_nak=430,
            pcie_l0_recovery=211,
            aer_correctable=1873,
            aer_nonfatal=3,
        )
        has(probe(root, "gpu", "0000:bf:00.0")[0], xgmi_error=7)
        has(probe(root, "gpu", "0000:df:00.0")[0], temp_junction_c=103, socket_thm_residency=5000)


if __name__ == "__main__":
    sys.exit(1 if suite.main() else 0)
