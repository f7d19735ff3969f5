"""What happens to a random fabric (repair_steps.py). Each returns whether anything did."""

from __future__ import annotations

from tests.worlds.repair_steps import World


def cut_cable(world: World) -> bool:
    left = sorted(world.cables - world.cut)
    world.cut |= set(world.dice.sample(left, min(len(left), world.dice.choice((1, 1, 2)))))
    return bool(left)


def cables_back(world: World) -> bool:
    back = world.dice.random() < 0.5
    some = set(sorted(world.cut)[:1]) if back else set(world.cut)
    world.cut -= some
    return bool(some)


def kill_switch(world: World) -> bool:
    live = sorted(set(world.ports) - world.dead)
    if len(live) > 2:
        world.dead.add(world.dice.choice(live))
    return len(live) > 2


def switches_back(world: World) -> bool:
    back = bool(world.dead)
    world.dead.clear()
    return back


def hosts_off(world: World) -> bool:
    world.off = {h for h in world.hosts if world.dice.random() < 0.3}
    return True


def move_host(world: World) -> bool:
    """To a port without a cable, or where one was plugged out."""
    host = world.dice.choice(sorted(world.hosts))
    port = world.free_port(world.dice.choice(sorted(world.ports)), former=True)
    if port is None:
        return False
    world.cables = {c for c in world.cables if port not in c}
    world.hosts[host] = port
    return True


def add_host(world: World) -> bool:
    port = world.free_port(world.dice.choice(sorted(world.ports)), former=True)
    if port is None or len(world.hosts) > 20:
        return False
    world.cables = {c for c in world.cables if port not in c}
    world.cut &= world.cables
    world.add_host(port)
    return True


def swap_lids(world: World) -> bool:
    one, other = world.dice.sample(sorted(world.hosts), 2)
    world.lid[one], world.lid[other] = world.lid[other], world.lid[one]
    return True


def move_cable(world: World) -> bool:
    if not world.cables:
        return False
    cable = world.dice.choice(sorted(world.cables))
    to = world.free_port(world.dice.choice(sorted(world.ports)))
    if to is None:
        return False
    world.cables.remove(cable)
    world.cut.discard(cable)
    world.cables.add((cable[0], to))
    return True


def swap_cables(world: World) -> bool:
    """Two cables end where the other one ended."""
    if len(world.cables) < 2:
        return False
    (a, b), (c, d) = pair = world.dice.sample(sorted(world.cables), 2)
    world.cables -= set(pair)
    world.cut -= set(pair)
    world.cables |= {(a, d), (c, b)}
    return True


def replace_switch(world: World) -> bool:
    old = world.dice.choice(sorted(world.ports))
    new = world.add_switch(world.ports.pop(old))
    del world.lid[old]
    world.dead.discard(old)

    def renamed(port: tuple[int, int]) -> tuple[int, int]:
        return (new, port[1]) if port[0] == old else port

    world.cables = {(renamed(a), renamed(b)) for a, b in world.cables}
    world.cut = {(renamed(a), renamed(b)) for a, b in world.cut}
    world.hosts = {h: renamed(port) for h, port in world.hosts.items()}
    return True


def new_switch(world: World) -> bool:
    if len(world.ports) > 12:
        return False
    old = sorted(world.ports)
    new = world.add_switch(8)
    joined = [world.connect(new, world.dice.choice(old)) for _ in range(world.dice.randint(1, 3))]
    if world.dice.random() < 0.5 and (port := world.free_port(new)):
        world.add_host(port)
    return any(joined)


EVENTS = {
    "cable": cut_cable,
    "back": cables_back,
    "switch dies": kill_switch,
    "switches back": switches_back,
    "hosts off": hosts_off,
    "host moves": move_host,
    "new host": add_host,
    "LIDs swapped": swap_lids,
    "cable moves": move_cable,
    "cables swapped": swap_cables,
    "replaced": replace_switch,
    "new switch": new_switch,
}
WEIGHTS = {
    "any": [6, 5, 2, 2, 1, 1, 1, 0.5, 0.5, 0.5, 0.7, 0.7],
    "cables": [4, 1, 0.5, 1, 0.2, 1, 3, 0.2, 5, 3, 0.2, 0.5],
}
"""How often each happens, in two kinds of stories."""
