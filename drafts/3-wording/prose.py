"""The prose of notebooks 3.2 to 3.5, 3.7 and 3.8, in place of its marks; read it again after each run."""
P2={
'TITLE':'''*Ours, beyond the paper.* A model may lose in other words what it knows. Over all relations paraphrases cost little, but the best
and the worst wording of a relation lie far apart, and each wording breaks other facts. How much of that is real? A table of right and wrong
answers has an interaction of fact and wording even if there is none behind it. Of the interaction's share of the variance, «table-nested|G&table=as answered&source=interaction|=share:0%» (Gemma) and
«table-nested|S&table=as answered&source=interaction|=share:0%» (SmolLM2), a perfectly nested table with the same totals already has «table-nested|G&table=perfectly nested&source=interaction|=share:0%» and «table-nested|S&table=perfectly nested&source=interaction|=share:0%».''',
'A1':'''The difference is «table-paraphrase-cost|G|mean:1%» points for Gemma and «table-paraphrase-cost|S|mean:1%» for SmolLM2. A mean hides much. Here is each wording, in the row of its relation:''',
'A2':'''In most relations some paraphrase is better than the original.''',
'A3':'''The distance is «table-worst-to-best|G&distance=worst to best|mean:0%» points for Gemma and «table-worst-to-best|S&distance=worst to best|mean:0%» for SmolLM2. Chance gives «table-worst-to-best|G&distance=by chance|=mean:0%» and «table-worst-to-best|S&distance=by chance|=mean:0%», so wordings
themselves make «table-worst-to-best|G&distance=beyond chance|mean:0%» and «table-worst-to-best|S&distance=beyond chance|mean:0%». Where the wording matters most, each with an example of its worst and its best wording:''',
'A4':'''Read the worst ones aloud: the kind of sentence breaks an answer more than its meaning does. A request is answered with "Yes, I can tell you ...";
a question that invites to travel makes a chatbot apologise.''',
'A5':'''The interaction has «table-nested|G&table=as answered&source=interaction|share:0%» of the variance for Gemma and «table-nested|S&table=as answered&source=interaction|share:0%» for SmolLM2. Rounding alone gives «table-nested|G&table=perfectly nested&source=interaction|=share:0%» and «table-nested|S&table=perfectly nested&source=interaction|=share:0%». Facts have «table-nested|G&table=as answered&source=fact|=share:0%» and
«table-nested|S&table=as answered&source=fact|=share:0%», and would have «table-nested|G&table=perfectly nested&source=fact|=share:0%» and «table-nested|S&table=perfectly nested&source=fact|=share:0%». So these shares cannot be read as they stand: what is beyond the null is interaction, not all of it.
The wording's own share, «table-nested|G&table=as answered&source=wording|share:0%» and «table-nested|S&table=as answered&source=wording|share:0%», hardly depends on it.''',
'A6':'''Before rounding the interaction has «table-latent|G&source=interaction|mean:0%» (Gemma) and «table-latent|S&source=interaction|mean:0%» (SmolLM2), the facts «table-latent|G&source=fact|mean:0%» and «table-latent|S&source=fact|mean:0%», wordings «table-latent|G&source=wording|mean:0%» and «table-latent|S&source=wording|mean:0%». A nested table
would have no interaction here. So it is real: whether a wording works depends on the fact.''',
'A7':'''A form was chosen by reading these answers, so these numbers only propose. We then wrote 64 **new** templates, one of each form for every relation, and asked
`n_new` of the facts in them:''',
'A8':'''Commands: «table-forms|G&form=command|mean:0%» points on the old templates and «table-forms-new|G&form=command|mean:0%» on the new ones for Gemma, «table-forms|S&form=command|mean:0%» and «table-forms-new|S&form=command|mean:0%» for SmolLM2. Requests:
«table-forms|G&form=request|mean:0%» and «table-forms-new|G&form=request|mean:0%», «table-forms|S&form=request|mean:0%» and «table-forms-new|S&form=request|mean:0%». With the question word last: «table-forms|G&form=question word last|mean:0%» and
«table-forms-new|G&form=question word last|mean:0%», «table-forms|S&form=question word last|mean:0%» and «table-forms-new|S&form=question word last|mean:0%». Only what shows in both counts.''',
'A9':'''With the paper's prompt SmolLM2 answers «table-prompts|S&measure=correct|=question-answer:0%» of these questions rightly, in its chat template «table-prompts|S&measure=correct|=chat:0%»: a difference of «table-prompts|S&measure=correct|mean:0%» points. «table-prompts|S&measure=newline first|=question-answer:0%» of its answers to that
prompt begin with a newline. Ending an answer there, as an earlier version did, counted them as empty; now «table-prompts|S&measure=empty|=question-answer:0%» are.''',
'END':'''**Each wording breaks other facts: before rounding, «table-latent|G&source=interaction|mean:0%» and «table-latent|S&source=interaction|mean:0%» of the variance is the interaction of fact and wording.**

- The best and the worst wording of a relation lie «table-worst-to-best|G&distance=worst to best|=mean:0%» and «table-worst-to-best|S&distance=worst to best|=mean:0%» points apart, «table-worst-to-best|G&distance=beyond chance|=mean:0%» and «table-worst-to-best|S&distance=beyond chance|=mean:0%» beyond chance.
- Shares of the variance of right and wrong answers overstate it: rounding makes half of them or more.
- The form of a sentence foretells losses only where new templates confirm it.

The paper reports the correctness of the originals alone. A model that answers all wordings alike would have no interaction; a larger one could show
that.''',
}
P3={
'TITLE':'''*Paper 3, section 3.* Are consistent answers right answers? Over relations the correlation of consistency (SCons) with correctness is r =
«table-correlation|G&level=across relations&measure=scons|r:2» for Gemma and «table-correlation|S&level=across relations&measure=scons|r:2» for SmolLM2. Without the words that answers repeat from the question it is «table-correlation|G&level=across relations&measure=bare SCons|r:2» and
«table-correlation|S&level=across relations&measure=bare SCons|r:2».''',
'B1':'''The rules differ by about a point; 3.6 measures both against labels of a reader model.''',
'B2':'''Gemma answers «table-correctness|G|mean:0%», SmolLM2 «table-correctness|S|mean:0%». The correctness of the paper's five models is one minus the majority baseline of its table 5 (always
say "wrong"):''',
'B3':'''Our models have 25 to 150 times fewer parameters, and a larger share of right answers. Our facts are well known, and PopQA's are not, so these
numbers cannot rank the models. 3.7 asks ours about PopQA.''',
'B4':'''SmolLM2 («table-consistency|S|mean:2») is more consistent than Gemma («table-consistency|G|mean:2»). It was asked in its chat template and answers in sentences that repeat the question (3.6).''',
'B5':'''Left: questions for people's names are hard, and most relations with few possible answers are easy, as in the paper. Right: SmolLM2's consistency
differs less between relations than Gemma's.''',
'B6':'''Across relations SCons has r = «table-correlation|G&level=across relations&measure=scons|r:2» and «table-correlation|S&level=across relations&measure=scons|r:2», bare SCons «table-correlation|G&level=across relations&measure=bare SCons|r:2» and «table-correlation|S&level=across relations&measure=bare SCons|r:2». Within relations it is «table-correlation|G&level=within relations&measure=scons|r:2» and
«table-correlation|S&level=within relations&measure=scons|r:2» for SCons, «table-correlation|G&level=within relations&measure=bare SCons|r:2» and «table-correlation|S&level=within relations&measure=bare SCons|r:2» for bare SCons. Bare SCons was thought of while these answers were read; 3.7 tests it on others. A point a
relation (intervals: figures 1 and 2):''',
'B7':'''Gemma's outlier is *capital*: consistent, and seldom right. Does it not know them? Right answers about capitals by wording (0 is the
original, n = 30 each):''',
'B8':'''It knows many of them: other wordings get what the original loses. So correctness, which the paper takes from the original wording alone, depends on
that wording as well as on the model (3.2).''',
'END':'''**Relations in which answers are alike are those in which more of them are right; once the question's words are taken out, this is so for both models.**

- Gemma answers «table-correctness|G|mean:0%» of the original questions, SmolLM2 «table-correctness|S|mean:0%» (n = 480 facts in 16 relations); the paper's five models 9 to 22% of PopQA's.
- Over relations, r = «table-correlation|G&level=across relations&measure=scons|r:2» and «table-correlation|S&level=across relations&measure=scons|r:2» for SCons; the paper draws it for Flan-T5-XXL, without a number.
- Within relations SCons has «table-correlation|G&level=within relations&measure=scons|=r:2» and «table-correlation|S&level=within relations&measure=scons|=r:2»: a weak sign, question by question.

Whether that sign is worth anything beside others, 3.4 and 3.5 ask. Larger models without a correlation across relations would refute the paper's claim.''',
}
P4={
'TITLE':'''*Paper 3, section 4.* A regression of right answers on certainty and consistency says that certainty predicts and consistency adds little. The same
regression with an intercept for each relation says that both do. The first compares relations, the second answers to questions of one kind; a user
needs the second. This is Simpson's paradox, and an earlier version of this notebook fell into it.''',
'C1':'''The lines at the left and at the right need not have one slope. At the left Cert separates relations: those with few possible answers are sampled
alike, and are easy. At the right a question's SCons and Cert stand beside its own relation's.''',
'C2':'''With one intercept SCons has an odds ratio of «table-simpson|G&regression=one intercept&term=SCons|odds_ratio:2» (Gemma) and «table-simpson|S&regression=one intercept&term=SCons|odds_ratio:2» (SmolLM2) beside Cert, which has «table-simpson|G&regression=one intercept&term=Cert|odds_ratio:2» and «table-simpson|S&regression=one intercept&term=Cert|odds_ratio:2». With an intercept a relation SCons has
«table-simpson|G&regression=an intercept a relation&term=SCons|odds_ratio:2» and «table-simpson|S&regression=an intercept a relation&term=SCons|odds_ratio:2», Cert «table-simpson|G&regression=an intercept a relation&term=Cert|odds_ratio:2» and «table-simpson|S&regression=an intercept a relation&term=Cert|odds_ratio:2». Same answers, another question.''',
'C3':'''So the paper never made the mistake: in its five models both slopes are positive in most categories, Cert's larger by two to five times. Its table 6,
which leaves the category out, mixes the two questions; so did ours.''',
'C4':'''The category is worth much, and a slope for each category is worth nothing here: the AIC of "one slope" is the lowest. In the paper the full model has the
lowest AIC, on thirty times as many questions.''',
'C5':'''The model with category, SCons and Cert is right in «table-06|G&predictor=QCat, SCons, Cert|mean:0%» (Gemma) and «table-06|S&predictor=QCat, SCons, Cert|mean:0%» (SmolLM2): «table-06|G&predictor=QCat, SCons, Cert|difference:0%» and «table-06|S&predictor=QCat, SCons, Cert|difference:0%» points above the majority. The relation's share alone has «table-06|G&predictor=relation alone|mean:0%» and «table-06|S&predictor=relation alone|mean:0%»; Cert
alone «table-06|G&predictor=Cert|=mean:0%» and «table-06|S&predictor=Cert|=mean:0%». The paper's table 6 (Flan-UL2):''',
'C6':'''The paper's gains are small where the majority is right already in 87%. It has no baseline that knows the category; ours shows that most of the gain is the
category.''',
'END':'''**Within relations consistency predicts right answers beside certainty: odds ratios of «table-simpson|G&regression=an intercept a relation&term=SCons|odds_ratio:1» and «table-simpson|S&regression=an intercept a relation&term=SCons|odds_ratio:1» for SCons, «table-simpson|G&regression=an intercept a relation&term=Cert|odds_ratio:1» and «table-simpson|S&regression=an intercept a relation&term=Cert|odds_ratio:1» for Cert. Between
relations SCons seems to add little («table-simpson|G&regression=one intercept&term=SCons|=odds_ratio:1» and «table-simpson|S&regression=one intercept&term=SCons|=odds_ratio:1»).**

The paper's medians are 0.2 to 0.5 for SCons and 0.4 to 1.2 for Cert, in logits, within categories: the same signs. Say which of the two you mean before you say what
"adds".

It would be refuted by intervals of SCons' odds ratio within relations that hold 1 in both models. Whether either is worth its cost beside one answer's
own probability, 3.5 asks.''',
}
P5={
'TITLE':'''*Ours, beyond the paper.* Before ten answers are paid for, ask what one already tells. The **sum** of the log-probabilities of one greedy answer tells right from
wrong answers of the same relation with an AUC of «table-ladder|G&predictor=sum&measure=auc_within|mean:2» (Gemma) and «table-ladder|S&predictor=sum&measure=auc_within|mean:2» (SmolLM2). An earlier version of this notebook took the mean a token, «table-ladder|G&predictor=mean&measure=auc_within|=mean:2» and «table-ladder|S&predictor=mean&measure=auc_within|=mean:2», and
found nothing in it. Ten samples (Cert) have «table-ladder|G&predictor=Cert&measure=auc_within|=mean:2» and «table-ladder|S&predictor=Cert&measure=auc_within|=mean:2».''',
'D1':'''Dashed is the sum. The figure shows differences to it, question by question, with intervals.''',
'D2':'''Within relations Cert differs from the sum by «table-ladder|G&predictor=Cert&measure=auc_within|difference:2» and «table-ladder|S&predictor=Cert&measure=auc_within|difference:2», SCons by «table-ladder|G&predictor=SCons&measure=auc_within|difference:2» and «table-ladder|S&predictor=SCons&measure=auc_within|difference:2», bare SCons by «table-ladder|G&predictor=bare SCons&measure=auc_within|difference:2» and «table-ladder|S&predictor=bare SCons&measure=auc_within|difference:2». P(true), one more question, differs
by «table-ladder|G&predictor=P(true)&measure=auc_within|difference:2» and «table-ladder|S&predictor=P(true)&measure=auc_within|difference:2». The dullest rival is the number of tokens: «table-ladder|G&predictor=number of tokens&measure=auc_within|difference:2» and «table-ladder|S&predictor=number of tokens&measure=auc_within|difference:2».''',
'D3':'''The relation alone has «table-ladder|G&predictor=relation alone&measure=auc|mean:2» and «table-ladder|S&predictor=relation alone&measure=auc|mean:2», with the sum «table-ladder|G&predictor=relation and sum&measure=auc|mean:2» and «table-ladder|S&predictor=relation and sum&measure=auc|mean:2», with bare SCons «table-ladder|G&predictor=relation and bare SCons&measure=auc|=mean:2» and «table-ladder|S&predictor=relation and bare SCons&measure=auc|=mean:2», with everything
«table-ladder|G&predictor=relation and all&measure=auc|=mean:2» and «table-ladder|S&predictor=relation and all&measure=auc|=mean:2». The paper's model has «table-ladder|G&predictor=the paper's model&measure=auc|=mean:2» and «table-ladder|S&predictor=the paper's model&measure=auc|=mean:2».''',
'D4':'''At the left the sum, for the tokens of one answer. With four answers bare SCons differs from it by «figure-bought|G&predictor=bare SCons&budget=4|difference:2» and «figure-bought|S&predictor=bare SCons&budget=4|difference:2», Cert by «figure-bought|G&predictor=Cert&budget=4|difference:2» and «figure-bought|S&predictor=Cert&budget=4|difference:2»; with all by «figure-bought|G&predictor=bare SCons&budget=11|difference:2» and
«figure-bought|S&predictor=bare SCons&budget=11|difference:2», Cert by «figure-bought|G&predictor=Cert&budget=11|difference:2» and «figure-bought|S&predictor=Cert&budget=11|difference:2».''',
'END':'''**One greedy answer's log-probability tells right from wrong answers of a relation with an AUC of «table-ladder|G&predictor=sum&measure=auc_within|mean:2» and «table-ladder|S&predictor=sum&measure=auc_within|mean:2»; what ten more answers add to it is the question, and the table answers it.**

- Cert minus the sum: «table-ladder|G&predictor=Cert&measure=auc_within|difference:2» and «table-ladder|S&predictor=Cert&measure=auc_within|difference:2».
- Bare SCons minus the sum: «table-ladder|G&predictor=bare SCons&measure=auc_within|difference:2» and «table-ladder|S&predictor=bare SCons&measure=auc_within|difference:2».
- The paper compares with the majority and asks of no single answer how sure the model was.

It would be refuted by a model in which a measure of many answers lies above the sum within relations, with an interval that leaves out 0, at any cost. Open: larger models, an NLI model for
semantic entropy.''',
}
P7={
'TITLE':'''*Real questions, beyond our own facts.* 1,000 questions of PopQA, which the paper's were made of: Gemma answers «table-popqa|G|mean:1%», SmolLM2 «table-popqa|S|mean:1%». And bare SCons (3.3), which was found on our facts, is tested on these
questions and on grown models, after its prediction was written down.''',
'E1':'''The paper's five models answer 9 to 22% of all of PopQA.''',
'E2':'''''',
'E3':'''With one intercept it is «table-views|G&regression=one intercept|odds_ratio:2» and «table-views|S&regression=one intercept|odds_ratio:2», with an intercept a relation «table-views|G&regression=an intercept a relation|odds_ratio:2» and «table-views|S&regression=an intercept a relation|odds_ratio:2».''',
'E4':'''Within relations SCons has «table-popqa-odds|G&regression=an intercept a relation&term=SCons|odds_ratio:2» and «table-popqa-odds|S&regression=an intercept a relation&term=SCons|odds_ratio:2», Cert «table-popqa-odds|G&regression=an intercept a relation&term=Cert|odds_ratio:2» and «table-popqa-odds|S&regression=an intercept a relation&term=Cert|odds_ratio:2». These are 200 questions with few right answers.''',
'E5':'''1. SmolLM2: «table-prediction|S&questions=PopQA&predictor=bare SCons&minus=SCons|difference:3». 2. Gemma: «table-prediction|G&questions=PopQA&predictor=bare SCons&minus=SCons|difference:3». 3. world-s: «table-prediction|model=world-s&predictor=bare SCons&minus=SCons|difference:3», world-m:
«table-prediction|model=world-m&predictor=bare SCons&minus=SCons|difference:3». 4. Bare SCons minus the sum: «table-prediction|G&questions=PopQA&predictor=bare SCons&minus=sum|difference:3», «table-prediction|S&questions=PopQA&predictor=bare SCons&minus=sum|difference:3», «table-prediction|model=world-s&predictor=bare SCons&minus=sum|difference:3» and «table-prediction|model=world-m&predictor=bare SCons&minus=sum|difference:3».''',
'END':'''**VERDICT**''',
}
P8={
'F4':'''SmolLM2's answers are sentences that repeat the question, so its SCons and Cert differ little between relations. Gemma's differ by relation.''',
'F5':'''With thirty questions a relation, a bin holds seven or eight; the lines show where relations stand more than slopes inside them.''',
'F9':'''The category has the largest statistic in all models, the paper's too.''',
'F10':'''In the paper the slopes of Cert and of popularity are positive in nearly all categories, those of SCons in 67 to 100%. Ours rest on thirty questions a category.''',
'F7':'''With 30 questions each these intervals are wide; the paper's come from 645 capitals and 547 sports.''',
'F-END':'''**Where our tables can be compared with the paper's, signs and order agree; single numbers do not carry far with thirty questions a relation.**

The paper has 14,267 questions and five models of 7 to 20 billion parameters.''',
}
