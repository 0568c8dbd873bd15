"""What a trace holds, against what the program did."""

from harness import check, check_equal, compare, each, trace_and_compare


def test_c_program(case):
    trace = trace_and_compare(case, ['--active', 3], case.train(), range(3, 6))
    check_equal(trace.health['step_source'], 'api', 'step_source')
    check_equal(trace.health['rank_source'], 'none', 'rank_source')
    check_equal(trace.health['cycle'], 1, 'cycle')


def test_python_program(case):
    trace = trace_and_compare(case, ['--active', 3], case.train_py(), range(3, 6))
    check_equal(trace.health['step_source'], 'optimizer', 'step_source')


@each(runtime=['train'], per_thread_default_stream=['train-ptds'])
def test_eight_threads(case, program):
    trace_and_compare(case, [], case.train('--threads', 8, '--layers', 10, program=program),
                      range(3, 6))


def test_two_python_threads(case):
    trace_and_compare(case, [], case.train_py('--threads', 2), range(3, 6))


def test_per_thread_default_stream(case):
    trace_and_compare(case, [], case.train(program='train-ptds'), range(3, 6))


def test_two_devices(case):
    trace = trace_and_compare(case, [], case.train('--peer', 1), range(3, 6))
    peer = [e for e in trace.of('gpu_memcpy') if 'PtoP' in e['name']]
    check_equal(len(peer), 3, 'peer copies')


def test_nccl(case):
    """Its kernels have what it tells about its calls; communicators are made before the window."""
    trace = trace_and_compare(case, [], case.train('--nccl', 1), range(3, 6))
    keys = {'Collective name', 'Group size', 'Message bytes', 'Messages in group', 'Bytes in group', 'Rank', 'Root',
            'Peer', 'Reduction', 'Communicator'}
    told = [{key: e['args'][key] for key in keys & set(e['args'])}
            for e in sorted(trace.of('kernel'), key=lambda e: e['ts']) if e['name'].startswith('nccl')]
    common = {'Group size': 4, 'Rank': 1, 'Communicator': '0xc0ffee0000000001'}
    check_equal(told, 3 * [{**common, 'Collective name': 'allreduce', 'Message bytes': 4096, 'Reduction': 'avg'},
                           {**common, 'Messages in group': 2, 'Bytes in group': 300}], 'args of NCCL kernels')
    others = [e for e in trace.of('kernel') if not e['name'].startswith('nccl') and keys & set(e['args'])]
    check_equal(others, [], 'other kernels with args of NCCL')


def test_calls_without_gpu_work(case):
    trace = trace_and_compare(case, [], case.train('--silent', 1), range(3, 6))
    check_equal(trace.health['launches_without_gpu'], 0, 'launches_without_gpu')


@each(before=[1], in_warm_up=[2], first_active=[3], active=[4], last_active=[5], after=[6])
def test_graph_captured(case, step):
    trace_and_compare(case, [], case.train('--capture-at', step), range(3, 6))


def test_graph_captured_first_thing(case):
    """The first window opens, and CUPTI is switched on, in the step that captures."""
    options = ['--skip-first', 0, '--wait', 0, '--warmup', 0, '--active', 2]
    trace = case.gtrace(options, case.train('--graph', 1, tools=[], off=())).trace().expect_checked()
    check_equal(trace.step_numbers(), [0, 1], 'steps')


@each(auto=['auto', 1], chosen_source=['api', 1], two_cycles=['api', 2])
def test_graph_as_a_whole(case, source, repeat):
    """One event a graph. CUPTI 13.0 crashes when that is switched on after a graph was made."""
    options = ['--cuda-graph', 'graph', '--step-source', source, '--skip-first', 0, '--repeat', repeat]
    command = case.train('--steps', 15, tools=[1, 2] + [6, 7] * (repeat - 1), off=[5] * (repeat - 1))
    result = case.gtrace(options, command)
    check_equal(len(result.names()), repeat, 'files')
    for name in result.names():
        trace = result.trace(name).expect_checked().expect_complete()
        first = 5 * trace.health['cycle'] - 3
        compare(trace, case.truth(), range(first, first + 3), graphs=False)
        launches = {e['args']['correlation'] for e in trace.calls() if e['name'] == 'cudaGraphLaunch'}
        graphs = [e for e in trace.gpu() if e['args']['correlation'] in launches]
        check_equal(len(graphs), 3, 'graphs')


def test_graphs_keep_their_launch(case):
    trace = case.gtrace([], case.train()).trace()
    launches = [e['args']['correlation'] for e in trace.calls() if e['name'] == 'cudaGraphLaunch']
    for correlation in launches:
        nodes = [e for e in trace.gpu() if e['args']['correlation'] == correlation]
        check_equal(len(nodes), 3, 'nodes of a graph launch')


def hostile(names):
    """The names of train.c's kernels as the simulated GPU changes them, by place in the module."""
    long_tail = '<long' + ',std::pair<int>' * 8192
    tails = ['"quo\\te"', '\n\t\x01new\r\nline', '\udcff\udcfe\udcc3(bad', None]
    for place, name in enumerate(names):
        tail = tails[place % 4]
        yield name, (name + tail if tail is not None else (name + long_tail)[:65536])


def test_hostile_names(case):
    """Any bytes become a name, and different bytes different names."""
    trace = case.gtrace([], case.train(), faults='hostile_names').trace()
    trace.expect_checked().expect_complete()
    want = {}
    for step in case.truth()['steps'][3:6]:
        for name, count in step['kernels'].items():
            want[name] = want.get(name, 0) + count
    got = trace.count('kernel')
    check_equal(sum(got.values()), sum(want.values()), 'kernels')
    check_equal(len(got), len(want), 'different names')
    plain = 'ampere_sgemm_128x64_tn'
    check(plain + '"quo\\te"' in got, 'quotes and backslash:', [n[:100] for n in got])
    check(any('\n\t\x01new\r\nline' in name for name in got), 'newlines and control characters')
    check(any(len(name) > 60000 for name in got), 'a name of 64 KiB')


def test_overlap_on_one_stream(case):
    """Every slice nests on its lane; tracecheck proves it. Long kernels make queues long."""
    trace_and_compare(case, [], case.train('--threads', 4, '--sync', 0), range(3, 6), faults='slow=5')


def test_graph_with_branches(case):
    """Kernels that overlap on one stream: lanes of their own, the stream's number in the event."""
    trace = trace_and_compare(case, [], case.train('--branches', 1), range(3, 6))
    overflow = [e for e in trace.of('kernel') if e['tid'] >= 2000000]
    check(len(overflow) >= 3, 'no overflow lane:', {e['tid'] for e in trace.of('kernel')})
    for event in overflow:
        check_equal(event['tid'] % 2000000, event['args']['stream'], 'stream of an overflow lane')


def test_ranges_hold_their_kernels(case):
    """External id leads from a kernel to the innermost range around its launch."""
    trace = case.gtrace([], case.train()).trace().expect_complete()
    ranges = {e['args']['External id']: e['name'] for e in trace.of('user_annotation')}
    names = {event['name']: set() for event in trace.of('kernel')}
    for event in trace.of('kernel'):
        names[event['name']].add(ranges[event['args']['External id']])
    check_equal(names['triton_poi_fused_add_relu_0'], {'layer'}, 'range of triton_poi_fused_add_relu_0')
    check_equal(names['void adam_update<true>(float*, float const*, float, int)'], {'optimizer "adam"'},
                'range of adam_update')
    check_equal(names['layernorm(float const*, float*, int)'], {'backward'}, 'range of layernorm')


def test_thread_names(case):
    """nvtxNameOsThread, as the viewer shows it."""
    trace = case.gtrace([], case.train()).trace()
    names = [e['args']['name'] for e in trace.events if e['ph'] == 'M' and e['name'] == 'thread_name']
    check(any('main loop' in name for name in names), names)


def test_gpu_annotations(case):
    """Each range with GPU work has a span on the GPU, from its first kernel to its last."""
    trace = case.gtrace([], case.train()).trace().expect_complete()
    spans = trace.count('gpu_user_annotation')
    for name in 'forward', 'layer', 'backward', 'ProfilerStep#3', 'ProfilerStep#5':
        check(spans[name] > 0, 'no span of', name, spans)
