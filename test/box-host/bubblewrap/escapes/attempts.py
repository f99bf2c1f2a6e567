"""Attempts to leave a box, one function each. Runs inside of a box, where each must fail, and outside of it, where each
must succeed: otherwise a failure inside would prove nothing.

    attempts.py PARAMS NAME...   PARAMS: JSON. Prints a line of JSON for each name: {"name", "escaped", "detail"}.
"""
import ctypes
import json
import os
import platform
import signal
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
X64 = platform.machine() == 'x86_64'
# Of x86-64 and of arm64. From 424 on they are the same.
NUMBERS = {
    'mount': (165, 40), 'umount2': (166, 39), 'unshare': (272, 97), 'setns': (308, 268), 'chroot': (161, 51),
    'clone': (56, 220), 'capset': (126, 91), 'add_key': (248, 217), 'request_key': (249, 218), 'keyctl': (250, 219),
    'ptrace': (101, 117), 'process_vm_readv': (310, 270), 'syslog': (103, 116), 'bpf': (321, 280),
    'perf_event_open': (298, 241), 'userfaultfd': (323, 282), 'personality': (135, 92), 'sethostname': (170, 161),
    'name_to_handle_at': (303, 264), 'open_by_handle_at': (304, 265), 'fanotify_init': (300, 262), 'kcmp': (312, 272),
    'shmget': (29, 194), 'quotactl': (179, 60), 'move_pages': (279, 239), 'swapon': (167, 224),
}
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000
SIGCHLD = 17
params = {}
attempts = {}


def attempt(function):
    attempts[function.__name__.replace('_', ' ')] = function
    return function


def syscall(name, *args):
    number = name if isinstance(name, int) else NUMBERS[name][0 if X64 else 1]
    prepared = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(ctypes.c_long(number), *prepared)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def fetch(family, address):
    """What a server of the test sends to whoever connects."""
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect(address)
        return client.recv(64) == b'reached'


# -- network

@attempt
def the_loopback_of_the_host():
    return fetch(socket.AF_INET, ('127.0.0.1', params['tcpPort']))


@attempt
def the_loopback_of_the_host_by_another_name():
    return fetch(socket.AF_INET, ('127.9.9.9', params['tcpPort']))


@attempt
def the_loopback_of_the_host_by_IPv6():
    return fetch(socket.AF_INET6, ('::1', params['tcpPort']))


@attempt
def the_loopback_of_the_host_by_a_mapped_address():
    return fetch(socket.AF_INET6, ('::ffff:127.0.0.1', params['tcpPort']))


@attempt
def every_address_of_the_host():
    return fetch(socket.AF_INET, ('0.0.0.0', params['tcpPort']))


def ask(family, address, question):
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(2)
        client.connect(address)
        client.send(question)
        return client.recv(512).endswith(b'reached')


@attempt
def UDP_to_the_host():
    return ask(socket.AF_INET, ('127.0.0.1', params['udpPort']), b'hello')


@attempt
def a_DNS_server_of_the_host():
    question = b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x04test\x00\x00\x01\x00\x01'
    return ask(socket.AF_INET, ('127.0.0.1', params['udpPort']), question)


@attempt
def the_metadata_address():
    return fetch(socket.AF_INET, ('169.254.169.254', params['farPort']))


@attempt
def a_private_network():
    return fetch(socket.AF_INET, ('10.11.12.13', params['farPort']))


@attempt
def a_public_address_by_IPv6():
    return fetch(socket.AF_INET6, ('2001:db8::13', params['farPort']))


@attempt
def a_service_of_another_box():
    return fetch(socket.AF_INET, ('127.0.0.1', params['otherBoxPort']))


@attempt
def the_proxy_of_another_box():
    return fetch(socket.AF_INET, ('127.0.0.1', 3128))


@attempt
def a_unix_socket_of_the_host():
    return fetch(socket.AF_UNIX, params['unixSocket'])


@attempt
def an_abstract_unix_socket_of_the_host():
    return fetch(socket.AF_UNIX, '\0' + params['abstractSocket'])


@attempt
def a_raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True


@attempt
def a_raw_IPv6_socket():
    socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).close()
    return True


@attempt
def a_packet_socket():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return True


@attempt
def another_address():
    # RTM_NEWADDR of 10.99.99.99 for loopback.
    address = bytes([10, 99, 99, 99])
    body = struct.pack('BBBBI', socket.AF_INET, 32, 0, 0, 1) + struct.pack('HH', 8, 2) + address
    message = struct.pack('IHHII', 16 + len(body), 20, 0x605, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(message)
        code = struct.unpack_from('i', link.recv(4096), 16)[0]
    if code != 0:
        raise OSError(-code, os.strerror(-code))
    return True


@attempt
def the_network_namespace_of_the_host():
    descriptor = os.open('/proc/%d/ns/net' % params['hostPid'], os.O_RDONLY)
    syscall('setns', descriptor, CLONE_NEWNET)
    return True


# -- namespaces and mounts

@attempt
def a_user_namespace():
    syscall('unshare', CLONE_NEWUSER)
    return True


def became_child(result):
    if result == 0:
        os._exit(0)
    os.waitpid(result, 0)
    return True


@attempt
def a_user_namespace_by_clone():
    return became_child(syscall('clone', CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0))


@attempt
def a_user_namespace_by_clone3():
    arguments = struct.pack('8Q', CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0)
    return became_child(syscall(435, ctypes.create_string_buffer(arguments), len(arguments)))


@attempt
def a_mount_namespace():
    syscall('unshare', CLONE_NEWNS)
    return True


@attempt
def a_mount():
    syscall('mount', b'none', b'/var/tmp', b'tmpfs', 0, 0)
    return True


@attempt
def a_writable_usr():
    # MS_REMOUNT | MS_BIND
    syscall('mount', b'none', b'/usr', 0, 0x1020, 0)
    with open('/usr/escape', 'w') as file:
        file.write('escaped')
    return True


@attempt
def a_write_to_usr():
    with open('/usr/escape', 'w') as file:
        file.write('escaped')
    return True


@attempt
def the_removal_of_a_mount():
    syscall('umount2', b'/proc', 2)
    return True


@attempt
def a_clone_of_the_mounts():
    os.close(syscall(428, -100, b'/', 1))
    return True


@attempt
def a_file_system_context():
    os.close(syscall(430, b'tmpfs', 0))
    return True


@attempt
def another_root():
    syscall('chroot', b'/usr')
    return True


@attempt
def a_file_by_its_handle():
    handle = ctypes.create_string_buffer(struct.pack('Ii', 64, 0) + bytes(64))
    mount_id = ctypes.c_int(0)
    path = params['handlePath']
    syscall('name_to_handle_at', -100, path.encode(), handle, ctypes.byref(mount_id), 0)
    directory = os.open(path, os.O_RDONLY)
    os.close(syscall('open_by_handle_at', directory, handle, 0))
    return True


# -- files and devices

def read(path):
    with open(path, 'rb') as file:
        return params['secret'].encode() in file.read()


@attempt
def a_file_of_the_host():
    return read(params['secretFile'])


@attempt
def a_file_of_the_host_through_dots():
    return read('/' + '../' * 40 + params['secretFile'])


@attempt
def a_file_of_the_host_through_a_link():
    link = '/tmp/link-%d' % os.getpid()
    os.symlink(params['secretFile'], link)
    try:
        return read(link)
    finally:
        os.unlink(link)


@attempt
def a_file_of_the_host_through_a_process_of_it():
    return read('/proc/%d/root%s' % (params['hostPid'], params['secretFile']))


@attempt
def a_hard_link_to_a_program_of_the_host():
    os.link('/usr/bin/env', params['linkTarget'])
    os.unlink(params['linkTarget'])
    return True


@attempt
def a_device_node():
    path = '/tmp/device-%d' % os.getpid()
    os.mknod(path, 0o20600, os.makedev(1, 5))
    try:
        os.close(os.open(path, os.O_RDONLY))
    finally:
        os.unlink(path)
    return True


@attempt
def a_disk_of_the_host():
    os.close(os.open(params['disk'], os.O_RDONLY))
    return True


@attempt
def shared_memory_of_the_host_by_path():
    return read('/dev/shm/' + params['sharedMemory'])


@attempt
def shared_memory_of_the_host_by_key():
    # Without a permission to ask for, everybody gets the number of a segment.
    syscall('shmget', params['sharedMemoryKey'], 0, 0o600)
    return True


@attempt
def the_groups_of_the_host():
    with open(params['cgroup'] + '/cgroup.procs', 'w') as file:
        file.write('0')
    return True


@attempt
def the_core_pattern_of_the_host():
    open('/proc/sys/kernel/core_pattern', 'r+').close()
    return True


@attempt
def the_log_of_the_kernel():
    # SYSLOG_ACTION_READ_ALL
    buffer = ctypes.create_string_buffer(4096)
    return syscall('syslog', 3, buffer, 4096) > 0


# -- privileges

@attempt
def a_setuid_program():
    become_ordinary()
    return run(params['setuidProgram'], '-u') == b'0\n'


@attempt
def a_setuid_program_of_its_own():
    path = '/tmp/own-%d' % os.getpid()
    with open('/usr/bin/id', 'rb') as source, open(path, 'wb') as copy:
        copy.write(source.read())
    # Outside, root makes it for another user.
    os.chmod(path, 0o4755)
    become_ordinary()
    return run(path, '-u') == b'0\n'


def become_ordinary():
    """Outside, where these run as root."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def run(*command):
    import subprocess
    return subprocess.run(command, stdout=subprocess.PIPE).stdout


@attempt
def file_capabilities():
    become_ordinary()
    status = run(params['capableProgram'], '/proc/self/status').decode()
    return int(status.split('CapEff:')[1].split()[0], 16) != 0


@attempt
def a_capability():
    header = struct.pack('Ii', 0x20080522, 0)
    # CAP_SYS_ADMIN
    data = struct.pack('6I', 1 << 21, 1 << 21, 0, 0, 0, 0)
    syscall('capset', ctypes.create_string_buffer(header), ctypes.create_string_buffer(data))
    return True


@attempt
def the_user_root():
    os.setuid(0)
    return True


@attempt
def a_higher_priority():
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    return True


@attempt
def another_host_name():
    syscall('sethostname', b'escaped', 7)
    return True


@attempt
def a_key():
    return syscall('add_key', b'user', b'escape', b'secret', 6, -2) > 0


@attempt
def the_keyring_of_the_session():
    # KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING
    return syscall('keyctl', 0, -3, 1) > 0


# -- processes of the host

@attempt
def a_signal_to_a_process_of_the_host():
    os.kill(params['hostPid'], 0)
    return True


@attempt
def the_tracing_of_a_process_of_the_host():
    # PTRACE_SEIZE, PTRACE_DETACH follows from our end.
    syscall('ptrace', 0x4206, params['hostPid'], 0, 0)
    return True


@attempt
def the_memory_of_a_process_of_the_host():
    open('/proc/%d/mem' % params['hostPid'], 'rb').close()
    return True


@attempt
def the_environment_of_a_process_of_the_host():
    return read('/proc/%d/environ' % params['hostPid'])


@attempt
def a_descriptor_of_a_process_of_the_host():
    process = syscall(434, params['hostPid'], 0)
    os.close(syscall(438, process, 0, 0))
    return True


@attempt
def an_inherited_descriptor():
    directory = os.open('/proc/self/fd', os.O_RDONLY)
    for name in os.listdir(directory):
        number = int(name)
        try:
            if number > 2 and params['secret'].encode() in os.pread(number, 4096, 0):
                return True
        except OSError:
            pass
    raise OSError('no descriptor with the secret')


# -- the kernel

@attempt
def a_BPF_map():
    attributes = ctypes.create_string_buffer(struct.pack('5I', 2, 4, 4, 1, 0) + bytes(100))
    os.close(syscall('bpf', 0, attributes, 120))
    return True


@attempt
def a_performance_event():
    attributes = ctypes.create_string_buffer(struct.pack('IIQ', 1, 120, 0) + bytes(104))
    os.close(syscall('perf_event_open', attributes, 0, -1, -1, 0))
    return True


@attempt
def an_io_uring():
    os.close(syscall(425, 4, ctypes.create_string_buffer(120)))
    return True


@attempt
def a_handler_of_missing_pages():
    os.close(syscall('userfaultfd', 1))
    return True


@attempt
def a_fixed_address_space():
    # ADDR_NO_RANDOMIZE
    return syscall('personality', 0x0040000) >= 0


@attempt
def a_comparison_of_kernel_objects():
    return syscall('kcmp', os.getpid(), os.getpid(), 0, 1, 2) >= 0


def report(name):
    """In a process of its own, which may lose its namespaces or be killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            escaped = bool(attempts[name]())
            outcome = {'escaped': escaped, 'detail': 'it worked' if escaped else 'no effect'}
        except BaseException as error:
            outcome = {'escaped': False, 'detail': '%s: %s' % (type(error).__name__, error)}
        os.write(writer, json.dumps(outcome).encode())
        os._exit(0)
    os.close(writer)
    text = b''
    while piece := os.read(reader, 65536):
        text += piece
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    killed = {'escaped': False, 'detail': 'killed by signal %d' % os.WTERMSIG(status)} if os.WIFSIGNALED(status) else None
    return {'name': name, **(json.loads(text) if text else killed or {'escaped': False, 'detail': 'no result'})}


if __name__ == '__main__':
    params = json.loads(sys.argv[1])
    for each in sys.argv[2:] or attempts:
        print(json.dumps(report(each)), flush=True)
