"""The list of mutants: a small change of one file that breaks a promise, and the tests that must notice it."""

# ruff: noqa: E501  (a mutant is read most easily as text beside text)

from __future__ import annotations

from typing import NamedTuple

from studies.mutants import users_way


class Mutant(NamedTuple):
    """Replace `old` by `new` in `file`; one of `tests` must then fail."""

    subject: str
    promise: str  # what is broken
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, text: str) -> str:
        """The text with the change. Raises ValueError unless `old` is in it exactly once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.promise}: {self.old!r} is {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


CHECKPOINT, ATOMIC, SAFETENSORS = (
    "training/test_checkpoint",
    "storage/test_atomic",
    "storage/test_safetensors_io",
)
SECURITY, IDENTITY, TABLES = "test_security", "runs/test_identity", "data/test_tables"
SPLIT, DIVISION, COLUMN = "data/test_split", "data/test_division", "data/test_split_column"
CLASSES, LOADER, CACHE, SCAN = (
    "data/test_classes",
    "data/test_loader",
    "data/test_scan_cache",
    "data/test_scan",
)
SHADOW, TEACHERS, SHARDS = "core/test_shadow", "core/test_teachers", "data/test_shards"
MARKDOWN, PAGE, PIXELS = "core/test_markdown", "report/test_page", "data/test_as_seen"
WILSON, PAIRED, RESAMPLING = (
    "core/test_metrics_intervals",
    "core/test_paired_interval",
    "core/test_metrics_resampling",
)

# subject, what is broken, file below tracer/, old text, new text, tests below tests/ (FILE or FILE::TEST)
ROWS: tuple[tuple[str, str, str, str, str, tuple[str, ...]], ...] = (
    # Checkpoints and files
    ("checkpoint", "the moments of the optimiser are not restored", "training/checkpoint.py",
     '    _load_optimiser(state, checkpoint.tensors["optimiser"])\n', "", (CHECKPOINT,)),
    ("checkpoint", "the count of steps is not restored", "training/checkpoint.py",
     '    state.step = checkpoint.counters["stage_step"]\n', "", (CHECKPOINT,)),
    ("checkpoint", "the regularizer is not saved", "training/checkpoint.py",
     "        tensors[REGULARIZER] = world.full_tensors(state.regularizer.state_dict())\n", "        pass\n", (CHECKPOINT,)),
    ("checkpoint", "a damaged file of a checkpoint is not noticed", "training/checkpoint.py",
     "        if file_blake2b(place / name) != expected:\n", "        if False:\n", (CHECKPOINT,)),
    ("checkpoint", "a manifest of another folder is accepted", "training/checkpoint.py",
     """ or f"step-{manifest['step']:09d}" != place.name""", "", (CHECKPOINT,)),
    ("checkpoint", "one checkpoint is kept instead of two", "training/checkpoint.py",
     "MAX_CHECKPOINTS = 2", "MAX_CHECKPOINTS = 1", (CHECKPOINT,)),
    ("checkpoint", "the oldest checkpoint is resumed from", "training/checkpoint.py",
     'sorted(folder.glob("step-*"), reverse=True)', 'sorted(folder.glob("step-*"))', (CHECKPOINT,)),
    ("atomic", "a file is written in place", "storage/atomic.py",
     "            fill(temporary)\n            temporary.chmod", "            fill(path)\n            _sync(path)\n            fill(temporary)\n            temporary.chmod", (ATOMIC,)),
    ("atomic", "a folder is written in place", "storage/atomic.py",
     "            fill(temporary)\n            mode", "            path.mkdir(exist_ok=True)\n            fill(path)\n            fill(temporary)\n            mode", (ATOMIC,)),
    ("atomic", "a file is renamed before it is on the disk", "storage/atomic.py",
     "            _sync(temporary)\n            temporary.replace(path)\n", "            temporary.replace(path)\n", (ATOMIC,)),
    ("atomic", "an old folder is deleted before the new one is there", "storage/atomic.py",
     "                path.replace(backup)\n", "                shutil.rmtree(path)\n", (ATOMIC,)),
    # Digests
    ("digest", "values of tensors are not hashed", "storage/safetensors_io.py",
     "        blake2b.update(tensor.reshape(-1).view(torch.uint8).numpy().data)\n", "", (SAFETENSORS,)),
    ("digest", "shapes of tensors are not hashed", "storage/safetensors_io.py",
     "{tensor.dtype}\\0{tuple(tensor.shape)}\\0", "{tensor.dtype}\\0", (SAFETENSORS,)),
    ("digest", "weights are read without comparing their checksum", "storage/safetensors_io.py",
     "    if expected is not None and expected != tensors_blake2b(tensors):\n", "    if False:\n", (SAFETENSORS,)),
    ("digest", "JSON is read without comparing its checksum", "storage/checksum.py",
     "    if (required or expected is not None) and expected != _blake2b(value):\n", "    if False:\n", (SAFETENSORS,)),
    # Teachers
    ("teacher", "the pending mass is not restored", "core/shadow.py",
     "        self.age, self.mass = replay(self.policy, self.step, self.steps)\n",
     "        self.age, self.mass = replay(self.policy, self.step, self.steps)\n        self.mass = self.mass._replace(pending=-float('inf'))\n", (SHADOW,)),
    ("teacher", "the mass is not restored", "core/shadow.py",
     "        self.age, self.mass = replay(self.policy, self.step, self.steps)\n", "", (SHADOW,)),
    ("teacher", "a state of another policy is accepted", "core/shadow.py",
     'if state["policy"] != (policy := _name(self.policy)):', 'if (policy := _name(self.policy)) is None:', (SHADOW,)),
    ("teacher", "the shadow of a half-precision model is in half precision", "core/shadow.py",
     "torch.promote_types(tensor.dtype, torch.float32) if tensor.is_floating_point() else tensor.dtype", "tensor.dtype", (SHADOW,)),
    ("teacher", "the pretrained weights have no mass", "core/teachers.py",
     "return Mass(held=self.log_density(0, steps))", "return Mass()", (TEACHERS,)),
    ("teacher", "a rare move forgets the steps before it", "core/teachers.py",
     "_log_add(mass.pending, self.log_density(step, steps))", "self.log_density(step, steps)", (TEACHERS,)),
    ("teacher", "the last interval does not reach the average", "core/teachers.py",
     'return (step - (self.clock == "updates")) % self.every == 0 or step == steps', 'return (step - (self.clock == "updates")) % self.every == 0', (TEACHERS,)),
    # Identity
    ("identity", "images are not part of a run's identity", "data/examples.py",
     'parts = {"images": images, "labels"', 'parts = {"images": [], "labels"', (f"{IDENTITY}::test_a_run_does_not_go_on_with_something_else[exchanged files]",)),
    ("identity", "captions are not part of a run's identity", "data/examples.py",
     '"captions": list(self.captions)}', '"captions": []}', (f"{IDENTITY}::test_a_run_does_not_go_on_with_something_else[a caption]",)),
    ("identity", "templates are not part of a run's identity", "runs/identity.py",
     '        "templates": short_hash(plan.templates),\n', "", (f"{IDENTITY}::test_a_run_does_not_go_on_with_something_else[templates]",)),
    ("identity", "retained data are not part of a run's identity", "runs/identity.py",
     '    sets |= {f"retained set {number}": each for number, each in enumerate(plan.retain, 1)}\n', "", (f"{IDENTITY}::test_a_run_does_not_go_on_with_something_else[retained images]",)),
    ("identity", "another config of the model is accepted", "runs/run.py",
     "MODEL_CONFIG: model_config(experiment)}\n", "}\n", (f"{IDENTITY}::test_a_run_does_not_go_on_with_something_else[config]",)),
    ("identity", "other weights of the model are accepted", "runs/run.py",
     "            if began.get(name) not in (None, digest):\n", "            if False:\n", (f"{IDENTITY}::test_a_run_does_not_go_on_with_something_else[weights]",)),
    ("identity", "merges are chosen on other data", "merging/run_group.py",
     "    first.require(first_plan)", "    pass", ("merging/test_command::test_other_data_than_the_run_held_out_are_not_chosen_by",)),
    ("identity", "the scan's cache does not look at the time of a file", "data/scan.py",
     "(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)", "(status.st_size, status.st_dev)", (CACHE,)),
    # Splits
    ("split", "a blank cell drops the column of splits", "data/formats/columns.py",
     "    if len(wrong) < len(values):\n", "    if False:\n", (COLUMN, TABLES)),
    ("split", "a column of splits with another name is passed over", "data/formats/columns.py",
     "        if name == called or _divides(splits - numbers, \"\" in distinct):\n", "        if name == called:\n", (COLUMN,)),
    ("split", "a column is_test is passed over", "data/formats/columns.py",
     "        elif _alluded(name) and len(distinct) > 1 and {cell.lower() for cell in distinct} <= YES_OR_NO:\n", "        elif False:\n", (COLUMN,)),
    ("split", "two columns may name different splits", "data/formats/columns.py",
     "        if usable[other].of_row != usable[first].of_row:\n", "        if False:\n", (COLUMN,)),
    ("split", "names that allude to splits are passed over", "data/formats/columns.py",
     "    if any(map(_alluded, set(cells))):\n", "    if False:\n", (COLUMN,)),
    ("split", "archives and shards ignore their splits", "data/examples.py",
     "examples if split.rows is None else", "examples if True else", (COLUMN,)),
    ("split", "one image may be in two splits", "data/formats/rows.py",
     '{"label": keys, "split": splits.of_row}', '{"label": keys}', (TABLES,)),
    ("split", "held-out images are trained on as well", "data/split.py",
     "examples.take(np.flatnonzero(~is_held_out)), examples", "examples, examples", (SPLIT, DIVISION)),
    ("split", "val is not held out", "data/split.py",
     'if share is None and "val" in train.splits:', "if False:", (DIVISION,)),
    ("split", "images that are in both sets are not mentioned", "data/split.py",
     "*own, *self.overlap, ", "*own, ", (DIVISION,)),
    # Classes
    ("classes", "two classes of one name are merged", "data/classes.py",
     "        refuse_one_name(distinct, normal_name)\n", "", (CLASSES,)),
    ("classes", "two labels of other data become one class", "data/classes.py",
     "        if (other := key_of.setdefault(label, key)) != key:\n", "        if False:\n", (SPLIT, CLASSES)),
    ("classes", "a minus sign is not part of a name", "data/classes.py",
     """f"{sign.removeprefix('+')}{whole""", """f"{whole""", (CLASSES,)),
    ("classes", "an invisible character makes another class", "data/classes.py",
     """ if unicodedata.category(c) != "Cf" and not""", " if not", (CLASSES, COLUMN)),
    # Loader
    ("loader", "every process reads the same part of a batch", "data/loader.py",
     "slice(rank * batch // ranks, (rank + 1) * batch // ranks)", "slice(0, batch // ranks)", (LOADER,)),
    ("loader", "an epoch is not shuffled anew", "data/loader.py",
     "np.random.default_rng([ORDER, seed, epoch])", "np.random.default_rng([ORDER, seed])", (LOADER,)),
    ("loader", "captions depend on the process's share of the batch", "data/loader.py",
     "np.random.default_rng([CAPTION, self.seed, step, int(i)])) for i in indices", "np.random.default_rng([CAPTION, self.seed, step, k])) for k, i in enumerate(indices)", (LOADER,)),
    ("loader", "the loader draws from the global generator", "data/loader.py",
     "        generator=torch.Generator(),", "        generator=None,", (LOADER,)),
    ("loader", "an image without any text is trained on", "data/loader.py",
     "            _check_texts(examples)\n", "            pass\n", (LOADER,)),
    # Locks, gathers, signals
    ("lock", "a lock is given to two", "storage/lock.py",
     "        except BlockingIOError:\n            yield False\n            return\n", "        except BlockingIOError:\n            pass\n", ("sweep/test_sweep::test_a_lock_is_for_one_and_ends_with_its_block",)),
    ("lock", "a lock empties the file that it is on", "storage/lock.py",
     "os.O_RDWR | os.O_CREAT", "os.O_RDWR | os.O_TRUNC | os.O_CREAT", (f"{SECURITY}::test_a_lock_neither_follows_a_link_nor_empties_a_file",)),
    ("lock", "a lock follows a link", "storage/lock.py",
     " | os.O_NOFOLLOW", "", (f"{SECURITY}::test_a_lock_neither_follows_a_link_nor_empties_a_file",)),
    ("lock", "workers inherit the lock", "storage/lock.py",
     "os.register_at_fork(after_in_child=_close_in_child)\n", "", ("storage/test_lock",)),
    ("gather", "the gradient of a gather is divided by the number of processes", "parallel/gather.py",
     "dist.get_world_size() * gradients[0][own]", "gradients[0][own]", ("parallel/test_pair::test_two_processes_train_what_one_does",)),
    ("gather", "the gradient of a divided loss is that of one part", "parallel/gather.py",
     "return dist.get_world_size() * gradients[0]\n", "return gradients[0]\n", ("parallel/test_pair::test_the_pairs_of_a_sigmoid_loss_are_divided_among_processes",)),
    ("gather", "labels are not gathered", "parallel/gather.py",
     "label=None if scene.label is None else all_gather(scene.label)", "label=scene.label", ("parallel/test_pair::test_two_processes_train_what_one_does",)),
    ("signals", "a signal does not save", "training/loop.py",
     "save, signal = True, interrupted.signal_number", "save, signal = False, interrupted.signal_number", ("training/test_signals::test_a_signal_does_not_wait_for_an_evaluation",)),
    ("signals", "SIGHUP and SIGUSR1 end a run unsaved", "data/loader.py",
     "SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)", "SIGNALS = (signal.SIGINT, signal.SIGTERM)", ("training/test_signals",)),
    ("signals", "signals that were ignored from the start are handled", "training/interrupt.py",
     "                if signal.getsignal(number) != signal.SIG_IGN:\n", "                if True:\n", ("training/test_signals::test_a_signal_that_was_ignored_from_the_start_stays_ignored",)),
    # What is read from strangers
    ("config", "unknown keys of a config reach open_clip", "models/config_check.py",
     "        if key not in allowed:\n", "        if False:\n", (f"{SECURITY}::test_only_known_keys_of_a_model_config_reach_open_clip",)),
    ("config", "a text tower brings compiled code", "models/load_guards.py",
     'not in (None, "eager", "sdpa")', "in ()", (f"{SECURITY}::test_a_text_tower_with_compiled_code_is_refused",)),
    ("config", "timm looks a model up on the hub", "models/config_check.py",
     "    _check_names(config, source)\n", "", (f"{SECURITY}::test_only_known_keys_of_a_model_config_reach_open_clip",)),
    ("config", "a config takes all of the memory", "models/config_check.py",
     "    _check_memory(config, source)\n", "", (f"{SECURITY}::test_values_of_a_config_are_plain_and_within_bounds",)),
    ("config", "objects may stand anywhere in a config", "models/config_check.py",
     'if isinstance(value, Mapping) and f"{path}{key}" in objects:', "if isinstance(value, Mapping):", (f"{SECURITY}::test_values_of_a_config_are_plain_and_within_bounds",)),
    ("config", "sizes in a config have no bounds", "models/config_check.py",
     "1 <= value <= size", "True", (f"{SECURITY}::test_values_of_a_config_are_plain_and_within_bounds",)),
    ("config", "a tokenizer may come with code", "models/source.py",
     "open_clip.get_tokenizer(self.name, trust_remote_code=False)", "open_clip.get_tokenizer(self.name)", (f"{SECURITY}::test_a_tokenizer_with_code_is_refused_and_nobody_is_asked",)),
    ("config", "transformers may ask whether to run a text tower's code", "models/load_guards.py",
     "AutoConfig.from_pretrained(name, trust_remote_code=False)", "AutoConfig.from_pretrained(name)", (f"{SECURITY}::test_a_text_tower_with_code_is_refused_and_nobody_is_asked",)),
    ("weights", "integers are taken for weights", "core/weights.py",
     "weights[name].is_complex() or weights[name].is_floating_point() != tensor.is_floating_point()", "weights[name].is_complex()", (f"{SECURITY}::test_weights_of_another_kind_of_number_are_refused",)),
    ("weights", "open_clip rounds integers into weights", "models/load_guards.py",
     "            if isinstance(read, Tensor) and expected.is_floating_point() and not read.is_floating_point():\n", "            if False:\n", (f"{SECURITY}::test_a_model_of_another_kind_of_number_is_refused",)),
    ("weights", "weights that are not finite are accepted", "core/weights.py",
     "if tensor.is_floating_point() and not torch.isfinite(tensor).all():", "if False:", (SAFETENSORS,)),
    ("images", "PostScript is opened", "storage/images.py",
     '"TIFF", "PPM")', '"TIFF", "PPM", "EPS")', (f"{SECURITY}::test_formats_that_start_other_programs_are_not_images",)),
    ("images", "pictures of phones lie on their side", "storage/images.py",
     "    if turn is not None:\n", "    if False:\n", (PIXELS,)),
    ("images", "twelve bits of sixteen are black", "storage/levels.py",
     "highest <= level", "level == 65535", (PIXELS,)),
    ("images", "a split has a white of its own", "data/split.py",
     '    options["white_level"] = train.white_level\n', "", (PIXELS,)),
    ("images", "unreadable images are passed over whatever their number", "data/scan.py",
     "TOLERATED = 0.01", "TOLERATED = 1.0", (SCAN,)),
    ("shards", "a member that points out of its shard is read", "data/formats/shards.py",
     """        if member.name.startswith("/") or ".." in member.name.split("/"):\n""", "        if False:\n", (SHARDS,)),
    ("archives", "a zip bomb is unpacked", "data/formats/arrays.py",
     "            if unpacked > max(MAX_RATIO * packed, UNPACKED):\n", "            if False:\n", (f"{SECURITY}::test_a_zip_bomb_is_not_unpacked",)),
    ("runs", "a run is written through links in its folder", "runs/run.py",
     "            if path.is_symlink():\n", "            if False:\n", (f"{SECURITY}::test_a_run_of_a_stranger_is_not_written_through_its_links",)),
    # Escaping
    ("escaping", "control characters reach the terminal in errors", "core/errors.py",
     "super().__init__(printable(str(message)))", "super().__init__(str(message))", (f"{SECURITY}::test_names_cannot_steer_a_terminal_or_a_script",)),
    ("escaping", "control characters reach the terminal in tables", "api/terminal.py",
     "table.add_row(*(escape(printable(cell)) for cell in row))", "table.add_row(*(escape(cell) for cell in row))", (f"{SECURITY}::test_class_names_cannot_steer_the_terminal",)),
    ("escaping", "a backslash before a pipe ends a cell", "core/markdown.py",
     r'r"\1\1\\|"', r'r"\1\\|"', (MARKDOWN,)),
    ("escaping", "a line break in a name goes into a SLURM script", "sweep/slurm.py",
     r'''for character in "\n\r\0"''', r'''for character in "\0"''', (f"{SECURITY}::test_names_cannot_steer_a_terminal_or_a_script",)),
    ("escaping", "advised commands are not quoted", "core/command_line.py",
     "shlex.join(", '" ".join(', (MARKDOWN,)),
    ("escaping", "the report's data can end their element", "report/page.py",
     r'''.replace("<", r"\u003c")''', "", (f"{PAGE}::test_embedded_data_survive_and_cannot_end_their_element",)),
    ("escaping", "the report does not escape names", "report/templates.py",
     "autoescape=True", "autoescape=False", (f"{PAGE}::test_hostile_names_are_text",)),
    # Intervals
    ("intervals", "Wilson's interval has no correction", "core/metrics/intervals.py",
     "math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))", "math.sqrt(share * (1 - share) / n)", (WILSON,)),
    ("intervals", "the interval over seeds is the normal one", "core/metrics/intervals.py",
     "half = t_quantile(n - 1) * std", "half = NORMAL_QUANTILE * std", (WILSON,)),
    ("intervals", "no change is certainty", "core/metrics/intervals.py",
     "up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)", "up, down = gained / (n + 2), lost / (n + 2)", (PAIRED,)),
    ("intervals", "a paired comparison resamples each side on its own", "core/metrics/resampling.py",
     "metric.score(a[draw]) - metric.score(b[draw])", "metric.score(a[draw]) - metric.score(b[draw.flip(0)])", (RESAMPLING,)),
)  # fmt: skip


def mutants() -> tuple[Mutant, ...]:
    """All mutants, with paths from the root of the repository."""
    return tuple(
        Mutant(subject, promise, f"tracer/{file}", old, new, tuple(map(_test, tests)))
        for subject, promise, file, old, new, tests in (
            *ROWS,
            *((users_way.SUBJECT, *row) for row in users_way.ROWS),
        )
    )


def _test(name: str) -> str:
    file, colons, test = name.partition("::")
    return f"tests/{file}.py{colons}{test}"
