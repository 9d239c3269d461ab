----------------------------- MODULE ExactlyOnce -----------------------------
(* One partition of a topic on its way into one table, with a quarantine.     *)
(*                                                                            *)
(* Agents read ranges of offsets, decode them, land files and commit. Any     *)
(* agent may crash between any two steps, repeat a batch from its checkpoint, *)
(* decode the batch differently the second time, act on a snapshot that is    *)
(* old, or lose the answer to a commit that went through. Other processes     *)
(* compact the table, and a person may restore an older version of it.        *)
(*                                                                            *)
(* `Guards` names the checks of the code. With all of them the invariants     *)
(* hold. Without any one of them TLC finds a history that breaks an invariant. *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS Agents,       \* processes that run the sink
          Compactors,   \* processes that join small files
          End,          \* offsets of the partition are 0 .. End - 1
          MaxVersion,   \* bound of the model: versions of the table
          Guards        \* the checks that are in force

AllGuards == {"SameVersion", "SkipReplays", "TrimRows", "RefuseHoles", "OneCommit",
              "QuarantineVersion", "QuarantineHeld", "CompactionFence", "RestoreFence"}
ASSUME Guards \subseteq AllGuards

Offsets == 0 .. End - 1
Symmetry == Permutations(Agents) \cup Permutations(Compactors)
None == [begin |-> 0, end |-> 0]
Unseen == [version |-> -1, position |-> 0]
Undrained == [version |-> -1, held |-> 0, named |-> {}]
Range(r) == r.begin .. r.end - 1
Max(a, b) == IF a > b THEN a ELSE b

VARIABLES
    table,       \* version, position, active files, and the bad rows that commits name
    quarantine,  \* version, how far it has come, and how often it holds each offset
    checkpoint,  \* of each agent: the range of its batch; survives a crash
    step,        \* of each agent: where its program stands
    bad,         \* of each agent: the offsets of its batch that it could not decode
    seen,        \* of each agent: its snapshot of the table
    drain,       \* of each agent: its snapshot of the quarantine, and the rows to add
    compaction,  \* of each compactor: the files that it joins
    restored     \* an older version of the table was put in place of the newest
vars == <<table, quarantine, checkpoint, step, bad, seen, drain, compaction, restored>>

Init ==
    /\ table = [version |-> 0, position |-> 0, files |-> {}, named |-> {}]
    /\ quarantine = [version |-> 0, held |-> 0, rows |-> [o \in Offsets |-> 0]]
    /\ checkpoint = [a \in Agents |-> None]
    /\ step = [a \in Agents |-> "idle"]
    /\ bad = [a \in Agents |-> {}]
    /\ seen = [a \in Agents |-> Unseen]
    /\ drain = [a \in Agents |-> Undrained]
    /\ compaction = [c \in Compactors |-> {}]
    /\ restored = FALSE

-----------------------------------------------------------------------------
(* The source may begin anywhere: its knowledge of the position may be old, or wrong. *)
Plan(a) ==
    /\ step[a] = "idle"
    /\ \E b \in Offsets : \E e \in b + 1 .. End :
        checkpoint' = [checkpoint EXCEPT ![a] = [begin |-> b, end |-> e]]
    /\ step' = [step EXCEPT ![a] = "planned"]
    /\ UNCHANGED <<table, quarantine, bad, seen, drain, compaction, restored>>

(* Which rows are bad may differ from the last time: another schema, another agent. *)
Decode(a) ==
    /\ step[a] = "planned"
    /\ \E rows \in SUBSET Range(checkpoint[a]) : bad' = [bad EXCEPT ![a] = rows]
    /\ step' = [step EXCEPT ![a] = "landed"]
    /\ UNCHANGED <<table, quarantine, checkpoint, seen, drain, compaction, restored>>

(* Without "OneCommit": the quarantine commits by itself before the table, and skips by its own position. *)
QuarantineFirst(a) ==
    /\ "OneCommit" \notin Guards
    /\ step[a] = "landed"
    /\ LET new == {o \in bad[a] : o >= quarantine.held} IN
        quarantine' = [version |-> quarantine.version,
                       held |-> Max(quarantine.held, checkpoint[a].end),
                       rows |-> [o \in Offsets |-> quarantine.rows[o] + IF o \in new THEN 1 ELSE 0]]
    /\ step' = [step EXCEPT ![a] = "quarantined"]
    /\ UNCHANGED <<table, checkpoint, bad, seen, drain, compaction, restored>>

Look(a) ==
    /\ step[a] = IF "OneCommit" \in Guards THEN "landed" ELSE "quarantined"
    /\ seen' = [seen EXCEPT ![a] = [version |-> table.version, position |-> table.position]]
    /\ step' = [step EXCEPT ![a] = "looked"]
    /\ UNCHANGED <<table, quarantine, checkpoint, bad, drain, compaction, restored>>

Again(a) == /\ step' = [step EXCEPT ![a] = IF "OneCommit" \in Guards THEN "landed" ELSE "quarantined"]
            /\ UNCHANGED <<checkpoint, bad>>
Done(a) == /\ step' = [step EXCEPT ![a] = "idle"]
           /\ checkpoint' = [checkpoint EXCEPT ![a] = None]
           /\ bad' = [bad EXCEPT ![a] = {}]

(* The rows of the batch from `floor` on become a file; the bad ones are named in the same commit. *)
Commit(a, floor) ==
    LET rows == {o \in Range(checkpoint[a]) : o >= floor} IN
    /\ table.version < MaxVersion
    /\ table' = [version |-> table.version + 1,
                 position |-> Max(table.position, checkpoint[a].end),
                 files |-> table.files \cup {[id |-> table.version, rows |-> rows \ bad[a]]},
                 named |-> IF "OneCommit" \in Guards /\ rows \cap bad[a] # {}
                           THEN table.named \cup {[end |-> checkpoint[a].end, rows |-> rows \cap bad[a]]}
                           ELSE table.named]
    /\ restored' = FALSE  \* a restore is seen only while it is the newest commit

Swap(a) ==
    LET batch == checkpoint[a]
        cur == seen[a].position
        replay == cur >= batch.end
        hole == cur < batch.begin
    IN
    /\ step[a] = "looked"
    /\ seen' = [seen EXCEPT ![a] = Unseen]
    /\ UNCHANGED <<quarantine, drain, compaction>>
    /\ \/ /\ "SameVersion" \in Guards /\ seen[a].version # table.version  \* a conflict: look again
          /\ Again(a) /\ UNCHANGED <<table, restored>>
       \/ /\ "RestoreFence" \in Guards /\ restored                        \* refused with a sentence
          /\ Done(a) /\ UNCHANGED <<table, restored>>
       \/ /\ ("SkipReplays" \in Guards /\ replay) \/ ("RefuseHoles" \in Guards /\ hole)
          /\ Done(a) /\ UNCHANGED <<table, restored>>
       \/ /\ "SameVersion" \notin Guards \/ seen[a].version = table.version
          /\ "RestoreFence" \notin Guards \/ ~restored
          /\ "SkipReplays" \notin Guards \/ ~replay
          /\ "RefuseHoles" \notin Guards \/ ~hole
          /\ Commit(a, IF "TrimRows" \in Guards /\ ~replay THEN cur ELSE batch.begin)
          /\ \/ Done(a)
             \/ Again(a)                                                   \* the answer was lost

Crash(a) ==
    /\ step[a] # "idle" \/ drain[a].version # -1
    /\ step' = [step EXCEPT ![a] = IF checkpoint[a] = None THEN "idle" ELSE "planned"]
    /\ bad' = [bad EXCEPT ![a] = {}]
    /\ seen' = [seen EXCEPT ![a] = Unseen]
    /\ drain' = [drain EXCEPT ![a] = Undrained]
    /\ UNCHANGED <<table, quarantine, checkpoint, compaction, restored>>

-----------------------------------------------------------------------------
(* Any agent moves named bad rows into the quarantine, at any time. *)
LookQuarantine(a) ==
    /\ drain[a].version = -1
    /\ \E one \in table.named : "QuarantineHeld" \notin Guards \/ one.end > quarantine.held
    /\ drain' = [drain EXCEPT ![a] = [version |-> quarantine.version, held |-> quarantine.held, named |-> table.named]]
    /\ UNCHANGED <<table, quarantine, checkpoint, step, bad, seen, compaction, restored>>

SwapQuarantine(a) ==
    LET todo == {one \in drain[a].named : "QuarantineHeld" \notin Guards \/ one.end > drain[a].held}
        new == UNION {one.rows : one \in todo}
        ends == {one.end : one \in todo}
    IN
    /\ drain[a].version # -1
    /\ quarantine.version < MaxVersion
    /\ IF "QuarantineVersion" \in Guards /\ drain[a].version # quarantine.version
       THEN UNCHANGED quarantine
       ELSE quarantine' = [version |-> quarantine.version + 1,
                           held |-> CHOOSE m \in ends \cup {quarantine.held} : \A e \in ends \cup {quarantine.held} : m >= e,
                           rows |-> [o \in Offsets |-> quarantine.rows[o] + IF o \in new THEN 1 ELSE 0]]
    /\ drain' = [drain EXCEPT ![a] = Undrained]
    /\ UNCHANGED <<table, checkpoint, step, bad, seen, compaction, restored>>

-----------------------------------------------------------------------------
(* A compactor, or another program's OPTIMIZE: it picks files, and commits much later. *)
Pick(c) ==
    /\ compaction[c] = {}
    /\ \E some \in SUBSET table.files : Cardinality(some) >= 2 /\ compaction' = [compaction EXCEPT ![c] = some]
    /\ UNCHANGED <<table, quarantine, checkpoint, step, bad, seen, drain, restored>>

Compact(c) ==
    LET old == compaction[c] IN
    /\ old # {}
    /\ table.version < MaxVersion
    /\ IF "CompactionFence" \in Guards /\ ~(old \subseteq table.files)
       THEN UNCHANGED table
       ELSE table' = [table EXCEPT !.version = @ + 1,
                                   !.files = (@ \ old) \cup {[id |-> table.version, rows |-> UNION {f.rows : f \in old}]}]
    /\ compaction' = [compaction EXCEPT ![c] = {}]
    /\ UNCHANGED <<quarantine, checkpoint, step, bad, seen, drain, restored>>

(* RESTORE brings older files back. The positions stay: Delta does not restore application ids. *)
Restore ==
    /\ ~restored
    /\ table.version < MaxVersion
    /\ \E o \in Offsets :
        /\ \E f \in table.files : f.rows # {} /\ \A r \in f.rows : r >= o
        /\ \A f \in table.files : (\A r \in f.rows : r < o) \/ (\A r \in f.rows : r >= o)
        /\ table' = [table EXCEPT !.version = @ + 1,
                                  !.files = {f \in @ : \A r \in f.rows : r < o}]
    /\ restored' = TRUE
    /\ UNCHANGED <<quarantine, checkpoint, step, bad, seen, drain, compaction>>

Next ==
    \/ \E a \in Agents : Plan(a) \/ Decode(a) \/ QuarantineFirst(a) \/ Look(a) \/ Swap(a) \/ Crash(a)
                         \/ LookQuarantine(a) \/ SwapQuarantine(a)
    \/ \E c \in Compactors : Pick(c) \/ Compact(c)
    \/ Restore

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
InTable(o) == Cardinality({f \in table.files : o \in f.rows})
Named(o) == Cardinality({one \in table.named : o \in one.rows})

(* Of the offsets below the position each is in exactly one place: the table, or the rows that a commit *)
(* named as bad. While a restored table waits for a person, the sink writes nothing.                    *)
ExactlyOnce ==
    ~restored => \A o \in Offsets :
        LET places == IF "OneCommit" \in Guards THEN InTable(o) + Named(o) ELSE InTable(o) + quarantine.rows[o]
        IN IF o < table.position THEN places = 1 ELSE "OneCommit" \in Guards => places = 0

(* The quarantine holds only rows that a commit named, and none of them twice. *)
QuarantineExact ==
    "OneCommit" \in Guards => \A o \in Offsets : quarantine.rows[o] <= Named(o)

(* What the quarantine claims to hold is there. *)
QuarantineComplete ==
    "OneCommit" \in Guards => \A one \in table.named : one.end <= quarantine.held =>
        \A o \in one.rows : quarantine.rows[o] = 1
=============================================================================
