/* SPDX-License-Identifier: MIT
 * Detection of clusters on small texts of our own, in the forms that the tools' manuals show: both
 * generations of Slurm's JSON, its tables and topologies, NVLink cliques of Kubernetes, LLDP,
 * oversubscribed fabrics. */
#include "tests/detect_fixture.h"

/* ---- schedulers --------------------------------------------------------------------------- */

static void check_slurm_json(void)
{
    /* scontrol show nodes --json of 23.02 and later: arrays, numbers as objects */
    static const char nodes[] =
        "{\"nodes\": [{\"name\": \"n1\", \"gres\": \"gpu:h100:8(S:0-1)\", \"state\": [\"IDLE\"], "
        "\"features\": [\"ib400\"], \"sockets\": 2, \"cores\": 48, \"real_memory\": {\"set\": "
        "true, "
        "\"infinite\": false, \"number\": 2000000}},\n"
        "{\"name\": \"n2\", \"gres\": \"gpu:h100:8(S:0-1)\", \"state\": [\"MIXED\"], \"sockets\": "
        "2,"
        " \"cores\": 48, \"real_memory\": 2000000},\n"
        "{\"name\": \"n3\", \"gres\": \"gpu:h100:8\", \"state\": [\"IDLE\", \"DRAIN\"]}],\n"
        " \"meta\": {\"slurm\": {\"release\": \"24.05.1\"}}}";
    /* sinfo --json of 23.02 and later: one entry for nodes alike, per partition */
    static const char sinfo[] =
        "{\"sinfo\": [{\"node\": {\"state\": [\"IDLE\"]}, \"nodes\": {\"total\": 2, \"nodes\": "
        "[\"n1\", \"n2\"]}, \"sockets\": {\"minimum\": 2, \"maximum\": 2}, \"cores\": "
        "{\"minimum\": "
        "48, \"maximum\": 48}, \"memory\": {\"minimum\": 2000000, \"maximum\": 2000000}, "
        "\"features\": {\"total\": \"ib400\"}, \"gres\": {\"total\": \"gpu:h100:8(S:0-1)\"}, "
        "\"partition\": {\"name\": \"a\"}},\n"
        "{\"node\": {\"state\": [\"IDLE\"]}, \"nodes\": {\"nodes\": [\"n1\", \"n2\"]}, \"gres\": "
        "{\"total\": \"gpu:h100:8(S:0-1)\"}, \"partition\": {\"name\": \"b\"}},\n"
        "{\"node\": {\"state\": [\"IDLE\", \"NO_RESPOND\"]}, \"nodes\": {\"nodes\": [\"n3\"]}, "
        "\"gres\": {\"total\": \"gpu:h100:8\"}, \"partition\": {\"name\": \"b\"}}]}";
    const char *const forms[] = {nodes, sinfo};
    for (int i = 0; i < 2; i++) {
        struct ty_detection d;
        if (!read_texts(i ? "sinfo JSON, new" : "scontrol JSON, new", &forms[i], 1, NULL, &d))
            continue;
        ok(d.cluster.n_nodes == 2 && d.cluster.gpus_per_node == 8 &&
               d.cluster.cpu_cores_per_node == 96,
           "two nodes of three, named once each, 96 cores");
        near(d.cluster.host_mem_bytes, 2e6 * 1048576.0, 1e-12, "MB of Slurm are MiB");
        near(d.cluster.nic_bytes_per_s, 50e9, 1e-12, "feature ib400");
        ok(remarks_with(&d, TY_REMARK_NOTE, "n3 (") == 1, "n3 is named as left out");
        ok(remarks_with(&d, TY_REMARK_GAP, "h100-pcie") == 1,
           "\"h100\" alone leaves the form open: a gap");
        ty_detection_free(&d);
    }
}

static void check_slurm_text(void)
{
    struct ty_detection d;
    /* sinfo -N -l: a date above, blanks between, S:C:T */
    const char *texts[3] = {
        "Mon Nov 30 08:00:00 2026\nNODELIST   NODES PARTITION STATE CPUS S:C:T MEMORY TMP_DISK "
        "WEIGHT AVAIL_FE REASON\nn1 1 gpu* idle 192 2:48:2 2000000 0 1 ib200 none\n",
        "NodeName=n[1-3] Gres=gpu:a100:4 Sockets=2 CoresPerSocket=32 RealMemory=500000 "
        "State=UNKNOWN\n",
        NULL};
    if (read_texts("sinfo -N -l, no GPUs in it", texts, 1, "a100-sxm-80gb", &d)) {
        ok(d.cluster.n_nodes == 1 && d.cluster.cpu_cores_per_node == 96 &&
               chosen(&d, "nodes")->trust == TY_TRUST_RULE,
           "a table without GRES counts nodes by rule");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-3] Gres=gpu:a100:4 Sockets=2 CoresPerSocket=32 RealMemory=500000\n";
    texts[1] = "SwitchName=l1 Nodes=n[1-2]\nSwitchName=l2 Nodes=n3,other[1-9] # more\n"
               "SwitchName=top Switches=l[1-2] Nodes=n[1-3]\n";
    if (read_texts("slurm.conf and topology.conf", texts, 2, NULL, &d)) {
        ok(d.cluster.n_nodes == 3 && d.cluster.gpus_per_node == 4, "three nodes in one line");
        ok(d.cluster.nodes_per_leaf == 2, "of a leaf those nodes count that are in the cluster");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-36] Gres=gpu:gb200:4\n";
    texts[1] = "BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18\n";
    if (read_texts("blocks of an NVL72", texts, 2, NULL, &d)) {
        ok(d.cluster.scaleup_domain == 72 && d.cluster.nodes_per_leaf == 0,
           "18 nodes of 4 GPUs are one domain of 72");
        ty_detection_free(&d);
    }
    texts[1] = "- topology: flat\n  cluster_default: false\n  tree:\n    switches:\n"
               "      - switch: root\n        children: s[1-2]\n      - switch: s1\n"
               "        nodes: n[01-30]\n"
               "- topology: racks   # the one in use\n  cluster_default: true\n  block:\n"
               "    block_sizes:\n      - 18\n    blocks:\n      - block: b1\n"
               "        nodes: \"n[1-18]\"\n      - block: b2\n        nodes: n[19-36]\n"
               "- topology: third\n  tree:\n    switches:\n      - switch: s\n"
               "        nodes: n[1-36]\n";
    if (read_texts("topology.yaml", texts, 2, NULL, &d)) {
        ok(d.cluster.scaleup_domain == 72 && d.cluster.nodes_per_leaf == 0,
           "the default topology counts, whatever stands around it");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-8] Gres=gpu:h200:8\n";
    texts[1] =
        "- topology: a\n  tree:\n    switches:\n      - switch: top\n        children: s1,s2\n"
        "      - switch: s1\n        nodes: n[1-4]\n      - switch: s2\n"
        "        nodes: n[5-8]\n- topology: b\n  tree:\n    switches:\n      - switch: s\n"
        "        nodes: n[1-8]\n";
    if (read_texts("topology.yaml without a default", texts, 2, NULL, &d)) {
        ok(d.cluster.nodes_per_leaf == 4, "the first topology counts");
        ty_detection_free(&d);
    }
    texts[0] = "NodeName=n[1-3] Gres=gpu:1g.5gb:7\n";
    if (read_texts("a node of MIG slices", texts, 1, "a100-sxm-40gb", &d)) {
        ok(!chosen(&d, "nodes"), "slices are no GPUs");
        ty_detection_free(&d);
    }
    refused("an endless list", "NodeName=n[1-1000][1-1000][1-1000] Gres=gpu:8\n", "endless");
    refused("a broken list", "NodeName=n[1-\n", "broken");
}

/* Appends a node of Kubernetes. */
static void kube_node(char *text, const char *name, const char *labels, const char *capacity)
{
    sprintf(text + strlen(text),
            "%s{\"kind\": \"Node\", \"metadata\": {\"name\": \"%s\", \"labels\": {%s}}, \"spec\": "
            "{}, \"status\": {\"capacity\": {%s}, \"conditions\": [{\"type\": \"Ready\", "
            "\"status\": \"True\"}]}}",
            strchr(text, 'N') ? ",\n" : "", name, labels, capacity);
}

static void check_kubernetes(void)
{
    static char text[65536];
    const char *at = text;
    struct ty_detection d;
    strcpy(text, "{\"kind\": \"List\", \"items\": [");
    for (int i = 0; i < 36; i++) {
        char name[32], labels[256];
        snprintf(name, sizeof name, "rack%d-%d", i / 18, i % 18);
        snprintf(labels, sizeof labels,
                 "\"nvidia.com/gpu.product\": \"NVIDIA-GB200\", \"nvidia.com/gpu.count\": \"4\", "
                 "\"nvidia.com/gpu.clique\": \"9c3b3b4e-0000-4000-8000-00000000000%d.32766\"",
                 i / 18);
        kube_node(text, name, labels, "\"nvidia.com/gpu\": \"4\"");
    }
    strcat(text, "]}");
    if (read_texts("NVLink cliques", &at, 1, NULL, &d)) {
        ok(d.cluster.scaleup_domain == 72 && d.cluster.n_nodes == 36 &&
               d.cluster.gpus_per_node == 4,
           "two cliques of 18 nodes: domains of 72");
        ty_detection_free(&d);
    }
    strcpy(text, "{\"kind\": \"List\", \"items\": [");
    kube_node(text, "shared",
              "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-80GB-SHARED\", "
              "\"nvidia.com/gpu.replicas\": \"4\"",
              "\"nvidia.com/gpu\": \"32\", \"memory\": \"1Ti\"");
    kube_node(text, "sliced", "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-80GB-MIG-3g.40gb\"",
              "\"nvidia.com/gpu\": \"16\"");
    strcat(text, "]}");
    if (read_texts("time slicing and MIG", &at, 1, NULL, &d)) {
        ok(d.cluster.gpus_per_node == 8 && d.cluster.n_nodes == 1,
           "32 replicas of 4 are 8 GPUs; slices are none");
        near(d.cluster.host_mem_bytes, 1099511627776.0, 1e-12, "1Ti");
        ty_detection_free(&d);
    }
}

/* ---- fabrics ------------------------------------------------------------------------------ */

static void check_ib(void)
{
    /* 4 hosts down, 2 links up; a SHARP aggregation node hangs on the leaf like a host */
    static const char text[] =
        "switchguid=0x1(1)\nSwitch\t41 \"S-1\"\t\t# \"leaf\" enhanced port 0 lid 1 lmc 0\n"
        "[1]\t\"H-1\"[1](11) \t\t# \"n1 HCA-1\" lid 10 4xHDR\n"
        "[2]\t\"H-2\"[1](12) \t\t# \"n2 HCA-1\" lid 11 4xHDR\n"
        "[3]\t\"H-3\"[1](13) \t\t# \"n3 HCA-1\" lid 12 4xHDR\n"
        "[4]\t\"H-4\"[1](14) \t\t# \"n4 HCA-1\" lid 13 4xHDR\n"
        "[41]\t\"H-9\"[1](19) \t\t# \"Mellanox Technologies Aggregation Node\" lid 20 4xHDR\n"
        "[21]\t\"S-2\"[1]\t\t# \"spine\" lid 2 4xHDR\n[22]\t\"S-2\"[2]\t\t# \"spine\" lid 2 4xHDR\n"
        "\nswitchguid=0x2(2)\nSwitch\t41 \"S-2\"\t\t# \"spine\" enhanced port 0 lid 2 lmc 0\n"
        "[1]\t\"S-1\"[21]\t\t# \"leaf\" lid 1 4xHDR\n[2]\t\"S-1\"[22]\t\t# \"leaf\" lid 1 4xHDR\n";
    const char *texts[] = {text, "NodeName=n[1-2] Gres=gpu:h100:8\nNodeName=n3 Gres=gpu:h100:8 "
                                 "State=DOWN\n"};
    struct ty_detection d;
    if (!read_texts("an oversubscribed leaf", texts, 2, NULL, &d))
        return;
    near(d.cluster.oversubscription, 2.0, 1e-12, "4 down over 2 up");
    near(d.cluster.nic_bytes_per_s, 25e9, 1e-12, "4 lanes of HDR");
    ok(d.cluster.n_nodes == 2 && d.cluster.nodes_per_leaf == 2 && d.cluster.nics_per_node == 1,
       "of the fabric's hosts those count that Slurm can use");
    ty_detection_free(&d);
}

static void check_lldp(void)
{
    /* lldpctl -f json with several interfaces, with one, and json0 */
    static const char several[] =
        "{\"lldp\": {\"interface\": [{\"eth0\": {\"via\": \"LLDP\", \"chassis\": {\"tor-mgmt\": "
        "{\"id\": {\"type\": \"mac\", \"value\": \"00:01\"}}}, \"port\": {\"auto-negotiation\": "
        "{\"supported\": true, \"current\": \"1000BaseTFD - Four-pair Category 5 UTP, full duplex "
        "mode\"}}}},\n"
        "{\"eth1\": {\"chassis\": {\"leaf1\": {\"id\": {\"value\": \"00:02\"}}}, \"port\": "
        "{\"auto-negotiation\": {\"current\": \"400GBASE-DR4\"}}}},\n"
        "{\"eth2\": {\"chassis\": {\"leaf2\": {\"id\": {\"value\": \"00:03\"}}}, \"port\": "
        "{\"auto-negotiation\": {\"current\": \"400GBASE-DR4\"}}}},\n"
        "{\"eth2\": {\"chassis\": {\"id\": {\"value\": \"00:04\"}}, \"port\": {}}}]}}";
    static const char single[] =
        "{\"lldp\": {\"interface\": {\"eth1\": {\"chassis\": {\"leaf1\": {\"id\": {\"value\": "
        "\"00:02\"}}}, \"port\": {\"auto-negotiation\": {\"current\": \"400GBASE-DR4\"}}}}}}";
    static const char json0[] =
        "{\"lldp\": [{\"interface\": [{\"name\": \"eth1\", \"chassis\": [{\"id\": [{\"type\": "
        "\"mac\", \"value\": \"00:02\"}], \"name\": [{\"value\": \"leaf1\"}]}], \"port\": "
        "[{\"auto-negotiation\": [{\"current\": [{\"value\": \"400GBASE-DR4\"}]}]}]}]}]}";
    const char *const texts[] = {several, single, json0};
    struct ty_detection d;
    if (read_texts("LLDP of one host", texts, 1, "h100-sxm", &d)) {
        ok(d.cluster.nics_per_node == 2 && d.cluster.fabric == TY_FABRIC_ROCE,
           "two fast interfaces, the slow one is for management");
        near(d.cluster.nic_bytes_per_s, 50e9, 1e-12, "400 Gb/s");
        ok(!chosen(&d, "network.nodes_per_leaf"), "one host does not fill a leaf");
        ty_detection_free(&d);
    }
    if (read_texts("LLDP of three hosts, in every form", texts, 3, "h100-sxm", &d)) {
        ok(d.cluster.nodes_per_leaf == 3, "three hosts under leaf1");
        ty_detection_free(&d);
    }
    refused("LLDP without a neighbour", "{\"lldp\": {}}", "without a neighbour");
}

int main(void)
{
    check_slurm_json();
    check_slurm_text();
    check_kubernetes();
    check_ib();
    check_lldp();
    fixture_end();
    return tap_done();
}
